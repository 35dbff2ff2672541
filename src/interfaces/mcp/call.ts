/** One call of a tool: who calls, how long they wait, what they hear meanwhile, and what of their person's answers came with it. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type ClientCapabilities,
  type Implementation,
  type McpRequestContext,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Client } from "../client/client.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { APPROVER_HEADER } from "../../base/schema/mcp.ts";
import type { McpParts } from "./parts.ts";
import { clean } from "./results.ts";

/** Clients that go on waiting as long as progress comes. */
const PATIENT: ReadonlySet<string> = new Set(["claude-code", "opencode"]);
const PROGRESS_CHARACTERS = 200;

/** What a client holds while its person is asked: which question of which work. It comes back signed. */
export interface Asked {
  readonly question: string;
  /** Of the exact action or plan that the person saw. */
  readonly hash: string;
  readonly session: string;
}

export class Call {
  readonly parts: McpParts;
  readonly client: Client;
  readonly signal: AbortSignal;
  readonly context: ServerContext;
  readonly #server: McpServer;
  readonly #connection: McpRequestContext;
  readonly #localApprover: () => string | undefined;
  readonly #beganAt = performance.now();
  #progress = 0;
  #saidAt = Number.NEGATIVE_INFINITY;
  #said = "";
  #later: NodeJS.Timeout | undefined;

  constructor(
    parts: McpParts,
    client: Client,
    at: { server: McpServer; connection: McpRequestContext; context: ServerContext; approver: () => string | undefined },
  ) {
    this.parts = parts;
    this.client = client;
    this.context = at.context;
    this.signal = at.context.mcpReq.signal;
    this.#server = at.server;
    this.#connection = at.connection;
    this.#localApprover = at.approver;
  }

  get #capabilities(): ClientCapabilities | undefined {
    return this.#connection.era === "modern" ? this.#enveloped(CLIENT_CAPABILITIES_META_KEY) : this.#server.server.getClientCapabilities();
  }

  get #clientName(): string {
    const info: Implementation | undefined =
      this.#connection.era === "modern" ? this.#enveloped(CLIENT_INFO_META_KEY) : this.#server.server.getClientVersion();
    return info?.name ?? "";
  }

  /** What each request of 2026-07-28 says of its client; the package has checked it. */
  #enveloped<Value>(key: string): Value | undefined {
    return (this.context.mcpReq.envelope as Readonly<Record<string, unknown>> | undefined)?.[key] as Value | undefined;
  }

  /** Undefined where the client can't ask its person, or may not answer for them. */
  get approver(): string | undefined {
    const elicitation = this.#capabilities?.elicitation;
    if (elicitation === undefined || (elicitation.form === undefined && elicitation.url !== undefined)) return undefined;
    const { requestInfo } = this.#connection;
    return requestInfo === undefined ? this.#localApprover() : (requestInfo.headers.get(APPROVER_HEADER) ?? undefined);
  }

  get #progressToken(): string | number | undefined {
    const { _meta: meta } = this.context.mcpReq;
    return meta?.progressToken;
  }

  get #usualMs(): number {
    if (this.#progressToken === undefined) return LIMITS.toolAnswerMs;
    return PATIENT.has(this.#clientName) ? LIMITS.toolAnswerToPatientMs : LIMITS.toolAnswerWithProgressMs;
  }

  /** Milliseconds until an answer is due. */
  get patienceMs(): number {
    const most = this.parts.answerWithinMs ?? this.#usualMs;
    return Math.max(0, most - (performance.now() - this.#beganAt));
  }

  /**
   * Whether the caller wants the work to end. A connection that breaks off does not say so, and neither does a client's timer; where the
   * protocol has no other sign (2026-07-28 over HTTP), a closed connection does.
   */
  get isCancelled(): boolean {
    if (!this.signal.aborted) return false;
    const reason: unknown = this.signal.reason;
    const overHttp = this.#connection.requestInfo !== undefined;
    const said = typeof reason === "string" ? reason : "";
    if (/time[d -]*out/i.test(said)) return false;
    const isClosed = reason instanceof Error && reason.name !== "AbortError";
    return isClosed ? overHttp && this.#connection.era === "modern" : true;
  }

  /** Tells the client what goes on; often enough to show that it does, and not more. */
  tell(text: string): void {
    this.#said = clean(text.replaceAll(/\s+/g, " ")).slice(0, PROGRESS_CHARACTERS);
    const restMs = this.#saidAt + LIMITS.toolProgressMs / 8 - performance.now();
    if (restMs <= 0) this.sign();
    else this.#later ??= setTimeout(() => this.sign(), restMs).unref();
  }

  /** Says it again: the client sees that the work goes on. */
  sign(): void {
    clearTimeout(this.#later);
    this.#later = undefined;
    const progressToken = this.#progressToken;
    if (progressToken === undefined || this.signal.aborted) return;
    this.#saidAt = performance.now();
    this.#progress += 1;
    const params = { progressToken, progress: this.#progress, message: this.#said };
    // A client that is gone hears nothing; the work goes on.
    this.context.mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
  }
}
