/** Requests that can change something outside, as the proxy sees them: it knows the method of HTTP that it can read, and of nothing else. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { LIMITS } from "../../base/schema/limits.ts";
import { deny, type Denied } from "./rules.ts";
import type { Session } from "./session.ts";

export interface EffectRequest {
  readonly method: string;
  readonly url: string;
  /** Read only where the request is held: the answer of a person is for exactly this. */
  readonly body: Buffer | undefined;
}

/** Completes an entry of the ledger: the answer's status, or nothing where there was none. */
export type Receipt = (status: number | null) => void;

export interface EffectRecords {
  /** Resolves when the request may be sent, its entry durable; or to the reason why not. */
  begin(session: Session, request: EffectRequest, signal: AbortSignal): Promise<Receipt | Denied>;
}

const READING = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

export function changesSomething(method: string): boolean {
  return !READING.has(method);
}

/** The body lies in memory until it is sent or refused, and counts for the sandbox until `ended`. */
export async function readHeld(session: Session, request: IncomingMessage, ended: Promise<void>): Promise<Buffer | Denied> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  void ended.then(() => (session.heldBytes -= bytes));
  // A client that sends too much still gets the refusal.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    session.heldBytes += chunk.length;
    if (session.heldBytes > LIMITS.heldTogetherBytes)
      return deny("too_many_bytes", "Too much of this sandbox waits to be sent.", "Wait until some of it is answered.");
    if (bytes > LIMITS.heldBodyBytes)
      return deny(
        "bad_request",
        `A request that is held has at most ${LIMITS.heldBodyBytes} bytes.`,
        "Send less, or ask to send it outside.",
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export function hashOfBody(body: Buffer): string {
  return createHash("sha256").update(body).digest("hex");
}
