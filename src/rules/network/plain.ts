/**
 * Plain requests of which the server carries no byte: it reads what the mover shows, decides, and says what is sent instead. Simple
 * answers go inside without it.
 */
import type { Answered, AskedConnection, Fetched } from "../../base/host/asked-connection.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { UNANSWERED } from "./answers.ts";
import type { Attempt } from "./dialling.ts";
import { endToEnd, headerLines, requestHead } from "./exchange.ts";
import { unreachable, type Gate } from "./gate.ts";
import type { PlainRequest } from "./plain-request.ts";
import { framingOf, readHead, without, type ResponseHead } from "./response.ts";
import type { Denied } from "./rules.ts";
import type { Session } from "./session.ts";
import { Way } from "./way.ts";

const HEAD_END = 4;
/** Each of them is a message to the server and one back: a host that never ends would keep both at work. */
const MOST_INTERIM = 100;

/** Undefined once the answer goes inside, or the client is gone; else what the client is told, which the mover can't. */
export async function carryPlain(gate: Gate, session: Session, asked: AskedConnection, request: PlainRequest): Promise<Denied | undefined> {
  const { host, port, method, path } = request;
  const question = { host, port, protocol: "http", method, path } as const;
  const ruling = await gate.permit(session, question, asked.signal);
  if (ruling.verdict === "deny") return ruling;
  const way = new Way(session, asked, request, (attempt) => fetched(asked, request, attempt));
  const released = await gate.release(session, question, ruling, asked.signal, (addresses) => way.dial(addresses));
  if ("verdict" in released) return released;
  const late = gate.ruling(session, host, port);
  // The rules changed while it was recorded.
  if (late.verdict === "deny") return gate.refuse(session, question, late);
  const answer = await way.go(released);
  if (answer === "undialled") return asked.signal.aborted ? undefined : unreachable(question);
  const head = await finalHead(asked, answer);
  if (head === "over") return undefined;
  const framing = head && framingOf(head, method === "HEAD");
  if (head === undefined || framing === undefined) return UNANSWERED;
  const { body, isChunked } = framing;
  // Chunks go inside as they came, so their end is not seen here.
  const isKept = request.isKept && body !== "all";
  const headers = endToEnd(isChunked ? without(head.headers, "content-length") : head.headers);
  const coding = isChunked && body === "all" ? ["Transfer-Encoding", "chunked"] : [];
  const text = `HTTP/1.1 ${head.status} ${head.phrase}\r\n${headerLines([...headers, ...coding])}${lastLines(isKept)}\r\n`;
  asked.reply(text, body, isKept ? LIMITS.egressHeadMs : 0);
  return undefined;
}

function fetched(asked: AskedConnection, { port, method, path, headers, isKept }: PlainRequest, attempt: Attempt): Fetched {
  const head = requestHead({ method, path, isChunked: false }, headers);
  // The length that an answer to HEAD names is of no body.
  const tail = method === "HEAD" ? "" : lastLines(isKept);
  return asked.fetch({ ...attempt, port, head, keepMs: isKept ? LIMITS.egressHeadMs : 0, tail });
}

/** What comes after interim answers, such as 103. */
async function finalHead(asked: AskedConnection, first: Answered): Promise<ResponseHead | "over" | undefined> {
  let came = first;
  for (let count = 0; ; count += 1) {
    if (!Buffer.isBuffer(came)) return came === "over" ? "over" : undefined;
    const head = readHead(came.toString("latin1", 0, came.length - HEAD_END));
    if (head === undefined || head.status === 101) return undefined;
    if (head.status >= 200) return head;
    // The mover would answer by itself with what comes next.
    if (count === MOST_INTERIM) return undefined;
    came = await asked.more();
  }
}

/** What the proxy says of its own connection to the client. */
function lastLines(isKept: boolean): string {
  return headerLines(
    isKept ? ["Connection", "keep-alive", "Keep-Alive", `timeout=${Math.ceil(LIMITS.egressHeadMs / 1000)}`] : ["Connection", "close"],
  );
}
