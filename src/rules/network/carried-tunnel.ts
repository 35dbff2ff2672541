/** Tunnels of which the server has neither side: it decides, sees what the program says first, and the mover moves all else. */
import type { AskedConnection } from "../../base/host/asked-connection.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { ESTABLISHED } from "./answers.ts";
import { contentOf, isTold } from "./first-words.ts";
import { unreachable, type Gate } from "./gate.ts";
import type { Authority } from "./host.ts";
import type { Allowed, Denied } from "./rules.ts";
import type { Session } from "./session.ts";
import { Way } from "./way.ts";

/** Plain HTTP in a tunnel: the server takes it apart, from what was said already. */
export interface HttpInside {
  readonly said: Buffer;
  readonly ruling: Allowed;
}

/** Undefined once both sides are joined, or the program is gone; else what the program is told, or what the server goes on with. */
export async function carryTunnel(
  gate: Gate,
  session: Session,
  asked: AskedConnection,
  { host, port }: Authority,
): Promise<Denied | HttpInside | undefined> {
  const question = { host, port, protocol: "connect" } as const;
  const permitted = await gate.permit(session, question, asked.signal);
  if (permitted.verdict === "deny") return permitted;
  const way = new Way(session, asked, question, (attempt) =>
    asked.open({ ...attempt, port, told: ESTABLISHED, silentMs: LIMITS.egressHeadMs }),
  );
  const released = await gate.release(session, question, permitted, asked.signal, (addresses) => way.dial(addresses));
  if ("verdict" in released) return released;
  const { ruling } = released;
  const late = gate.ruling(session, host, port);
  // The rules changed while it was recorded.
  if (late.verdict === "deny") return gate.refuse(session, question, late);
  const isAny = ruling.tcp && late.tcp;
  const began = performance.now();
  const answer = await way.go(released, isAny ? () => asked.carry() : undefined);
  if (answer === "undialled") return asked.signal.aborted ? undefined : unreachable(question);
  const said = Buffer.isBuffer(answer) ? await whole(asked, answer) : undefined;
  if (said === undefined) return undefined;
  // Rules may have changed while the program was silent; what the policy says is looked at as often as for connections that are open.
  const fallen = await gate.fallen(session, host, port, performance.now() - began > LIMITS.egressWatchMs);
  const content = fallen ?? contentOf(said, question);
  if (content === "http") return { said, ruling };
  // Where a secret came a moment ago, the next connection is opened.
  const isFit = content === "tls" && gate.interceptor(host, port) === undefined;
  if (content !== "tls") await gate.refuse(session, question, content);
  if (isFit) asked.carry();
  else asked.destroy();
  return undefined;
}

/** What the program says first; undefined where it hangs up before that is clear. */
async function whole(asked: AskedConnection, first: Buffer): Promise<Buffer | undefined> {
  let said = first;
  while (!isTold(said)) {
    const more = await asked.more();
    if (!Buffer.isBuffer(more)) return undefined;
    said = Buffer.concat([said, more]);
  }
  return said;
}
