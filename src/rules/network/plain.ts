/**
 * Plain requests of which the server carries no byte: it reads the heads that the mover shows, decides, and says what is sent instead
 * of them.
 */
import type { AskedConnection, Fetched } from "../../base/host/asked-connection.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { UNANSWERED } from "./answers.ts";
import { attempts } from "./dialling.ts";
import { endToEnd, headerLines, requestHead } from "./exchange.ts";
import { unreachable, type Gate, type Question, type ReleasedHost } from "./gate.ts";
import type { PlainRequest } from "./plain-request.ts";
import { framingOf, readHead, without, type ResponseHead } from "./response.ts";
import type { Denied } from "./rules.ts";
import type { Session } from "./session.ts";

const HEAD_END = 4;

/** Undefined once the answer goes inside, or nobody waits for one; else what the client is told, which the mover can't. */
export async function carryPlain(gate: Gate, session: Session, asked: AskedConnection, request: PlainRequest): Promise<Denied | undefined> {
  const { host, port, method, path } = request;
  const question = { host, port, protocol: "http", method, path } as const;
  const ruling = await gate.permit(session, question, asked.signal);
  if (ruling.verdict === "deny") return ruling;
  const released = await gate.release(session, question, ruling, asked.signal);
  if ("verdict" in released) return released;
  // The rules may have changed while it was recorded. From here on, what they forbid is cut.
  const late = gate.ruling(session, host, port);
  if (late.verdict === "deny") return gate.refuse(session, question, late);
  const fetched = await fetchFirst(session, asked, question, released, requestHead({ ...request, isChunked: false }, request.headers));
  if (asked.signal.aborted) return undefined;
  if (fetched === undefined) return unreachable(question);
  const head = await finalHead(asked, fetched.answer);
  const framing = head && framingOf(head, method === "HEAD");
  if (asked.signal.aborted) return undefined;
  if (head === undefined || framing === undefined) return UNANSWERED;
  // Chunks go inside as they came, so their end is not seen here.
  const isKept = request.isKept && framing.body !== "all";
  const end = isKept
    ? ["Connection", "keep-alive", "Keep-Alive", `timeout=${Math.ceil(LIMITS.egressHeadMs / 1000)}`]
    : [...(framing.isChunked && framing.body === "all" ? ["Transfer-Encoding", "chunked"] : []), "Connection", "close"];
  const headers = framing.isChunked ? without(head.headers, "content-length") : head.headers;
  const text = `HTTP/1.1 ${head.status} ${head.phrase}\r\n${headerLines([...endToEnd(headers), ...end])}\r\n`;
  asked.reply(Buffer.from(text, "latin1"), framing.body, isKept ? LIMITS.egressHeadMs : 0);
  return undefined;
}

/** The first address that is reached, with the head of its answer if one came. */
async function fetchFirst(
  session: Session,
  asked: AskedConnection,
  { host, port }: Question,
  { addresses, follow }: ReleasedHost,
  head: string,
): Promise<{ readonly answer: Buffer | undefined } | undefined> {
  for (const { address, withinMs } of attempts(addresses)) {
    if (asked.signal.aborted) return undefined;
    const outside: Fetched = asked.fetch({ address, port, withinMs, head: Buffer.from(head, "latin1") });
    session.begin({ host, port, outside, cut: () => outside.cut() });
    const answer = await outside.answer;
    if (answer === "undialled") continue;
    follow(outside);
    return { answer };
  }
  return undefined;
}

/** What comes after interim answers, such as 103. */
async function finalHead(asked: AskedConnection, first: Buffer | undefined): Promise<ResponseHead | undefined> {
  let came: Buffer | "undialled" | undefined = first;
  while (Buffer.isBuffer(came)) {
    const head = readHead(came.toString("latin1", 0, came.length - HEAD_END));
    if (head === undefined || head.status === 101) return undefined;
    if (head.status >= 200) return head;
    came = await asked.more();
  }
  return undefined;
}
