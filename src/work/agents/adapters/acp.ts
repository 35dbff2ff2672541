/**
 * Any agent that speaks the Agent Client Protocol over its stdin and stdout. The protocol has no way to say something during a turn:
 * a message waits for its end. An agent asks before it acts if it is one that does; what it asks, the server answers.
 */
import { GATEWAY_TOOLS_PATH } from "../../../base/schema/gateway.ts";
import { EVENT_TEXT_CHARACTERS } from "../../../base/schema/run.ts";
import type { AgentStart, Heard, Session } from "../adapter.ts";
import { number, record, text, type Loose } from "../loose-json.ts";
import { answerOptions, askedActions, callEvents, isOfGateway, outputOf, toolOf } from "./acp-calls.ts";
import { RpcLines, rpcMessage } from "./json-rpc.ts";
import { decided, question, refusalOf, requestsOf, withQuestion, type Questions } from "./questions.ts";
import {
  endedWith,
  type Entries,
  entry,
  lastWordsOf,
  messageText,
  nameOf,
  raw,
  said,
  thought,
  toolResult,
  withEntry,
  without,
} from "./wire.ts";

const rpc = new RpcLines({ jsonrpc: "2.0" });
const INITIALIZE = "initialize";
const SESSION = "session";
const MESSAGE = "message ";
/** Kinds of calls that change something, inside or outside. */
const ACTS: ReadonlySet<string> = new Set(["execute", "edit", "delete", "move", "fetch"]);

type AcpState = {
  readonly version: string | null;
  /** What session/new needs of the answer to initialize. */
  readonly hasHttp: boolean;
  /** The conversation that was to go on is not there any more. */
  readonly isLost: boolean;
  readonly session: string | null;
  /** What is told now is the history of the conversation that was loaded. */
  readonly isHistory: boolean;
  /** The message whose turn it is. */
  readonly prompt: string | null;
  /** It has begun to act on it. */
  readonly begun: boolean;
  /** What it says or thinks just now comes in pieces. */
  readonly speech: { readonly kind: "message" | "thinking"; readonly text: string } | null;
  readonly lastWords: string;
  /** Calls without a result: their tool, and whether the call was told. */
  readonly calls: Entries<{ readonly tool: string; readonly title: string; readonly told: boolean; readonly answer?: boolean }>;
  readonly questions: Questions;
  readonly lastError: string;
};

const FRESH: AcpState = {
  version: null,
  hasHttp: false,
  isLost: false,
  session: null,
  isHistory: false,
  prompt: null,
  begun: false,
  speech: null,
  lastWords: "",
  calls: {},
  questions: {},
  lastError: "",
};

export const ACP_ABILITIES = { messages: "turn", interrupt: true, resume: true, asks: true, tools: "mcp" } as const;

/** What differs between agents. */
export interface AcpAgent {
  readonly name: string;
  readonly title: string;
  /** Kind of the update behind the history of a loaded conversation, for one that tells the history after it has said that it is loaded. */
  readonly afterHistory?: string;
  /** The policy stands before its task: it gets no file with it. */
  readonly tellsPolicy?: true;
  /** Its configuration has it ask: what it did not ask about is judged afterwards. */
  readonly asks?: true;
  /** It has the gateway's tools in another way. */
  readonly hasOwnTools?: true;
}

export function acpSession(agent: AcpAgent, start: AgentStart, state: unknown): Session {
  return new AcpSession(agent, start, (state as AcpState | undefined) ?? FRESH);
}

class AcpSession implements Session {
  readonly #agent: AcpAgent;
  readonly #start: AgentStart;
  #state: AcpState;

  constructor(agent: AcpAgent, start: AgentStart, state: AcpState) {
    this.#agent = agent;
    this.#start = start;
    this.#state = state;
  }

  get state(): AcpState {
    return this.#state;
  }

  #set(patch: Partial<AcpState>): void {
    this.#state = { ...this.#state, ...patch };
  }

  begin(): readonly Heard[] {
    const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
    const params = { protocolVersion: 1, clientCapabilities, clientInfo: { name: "vivarium", title: "Vivarium", version: "1" } };
    return [{ write: rpc.request(INITIALIZE, "initialize", params) }];
  }

  message(id: string, words: string): string | undefined {
    const { session, prompt, isHistory } = this.#state;
    if (session === null || prompt !== null || isHistory) return undefined;
    this.#set({ prompt: id, begun: false, lastWords: "" });
    const { task, policy } = this.#start;
    const before = this.#agent.tellsPolicy === true && id === task.id ? `${policy.text}\n\n` : "";
    const content = [{ type: "text", text: `${before}${messageText(this.#start, id, words)}` }];
    return rpc.request(`${MESSAGE}${id}`, "session/prompt", { sessionId: session, prompt: content });
  }

  /** A prompt is answered at the end of its turn: whether it was read can't be asked. */
  probe(): undefined {
    return undefined;
  }

  /** Questions of a turn that is cancelled are answered as cancelled: the protocol wants that. */
  interrupt(): string {
    const { session, prompt, questions } = this.#state;
    if (session === null || prompt === null) return "";
    this.#set({ questions: {} });
    const answers = Object.keys(questions).map((id) => rpc.result(id, { outcome: { outcome: "cancelled" } }));
    return [rpc.notification("session/cancel", { sessionId: session }), ...answers].join("");
  }

  pending(): readonly Heard[] {
    return requestsOf(this.#state.questions);
  }

  answer(request: string, allowed: boolean): string {
    const { left, settled } = decided(this.#state.questions, request, allowed);
    this.#set({ questions: left });
    if (settled === undefined) return "";
    this.#note(settled.question.call ?? "", allowed);
    return outcome(settled.id, settled.question.reply[allowed ? "allow" : "reject"]);
  }

  /** The answer to what was asked about a call. */
  #note(call: string, answer: boolean): void {
    const known = entry(this.#state.calls, call);
    if (known !== undefined) this.#set({ calls: withEntry(this.#state.calls, call, { ...known, answer }) });
  }

  line(line: string): readonly Heard[] {
    const heard = rpcMessage(line);
    if (heard === undefined) return raw("stdout", line);
    if (heard.kind === "answer") return this.#answered(heard.id, heard.result, heard.error);
    if (heard.kind === "request") return this.#asked(heard.id, heard.method, heard.params);
    if (heard.method !== "session/update") return heard.method.startsWith("_") || heard.method.startsWith("$/") ? [] : raw("stdout", line);
    const isOurs = this.#state.session !== null && heard.params["sessionId"] === this.#state.session;
    // What comes before a session is open is the history of one that is loaded.
    return isOurs ? this.#updated(record(heard.params["update"])) : [];
  }

  errorLine(line: string): readonly Heard[] {
    this.#set({ lastError: lastWordsOf(line) || this.#state.lastError });
    return raw("stderr", line);
  }

  end(exitCode: number | null): readonly Heard[] {
    return [...this.#spoken(), ...endedWith(this.#agent.title, exitCode, this.#state.lastError)];
  }

  #answered(id: string, result: Loose, error: string | undefined): readonly Heard[] {
    if (id === INITIALIZE) return this.#initialised(result, error);
    if (id === SESSION) return this.#opened(result, error);
    const message = id.startsWith(MESSAGE) ? id.slice(MESSAGE.length) : "";
    return message !== "" && message === this.#state.prompt ? this.#ended(message, result, error) : [];
  }

  #initialised(result: Loose, error: string | undefined): readonly Heard[] {
    if (this.#state.version !== null) return [];
    if (error !== undefined) return [{ over: "failed", reason: `${this.#agent.title} did not start: ${error}` }];
    const abilities = record(result["agentCapabilities"]);
    const version = nameOf(record(result["agentInfo"])["version"]) || "unknown";
    this.#set({ version, hasHttp: record(abilities["mcpCapabilities"])["http"] === true });
    const { conversation } = this.#start;
    return [{ write: conversation !== null && abilities["loadSession"] === true ? this.#load(conversation) : this.#open() }];
  }

  #open(): string {
    return rpc.request(SESSION, "session/new", this.#place());
  }

  #load(sessionId: string): string {
    return rpc.request(SESSION, "session/load", { sessionId, ...this.#place() });
  }

  #place(): object {
    const { project, gateway } = this.#start;
    const server = { type: "http", name: "vivarium", url: `${gateway}${GATEWAY_TOOLS_PATH}`, headers: [] };
    return { cwd: project, mcpServers: this.#state.hasHttp && this.#agent.hasOwnTools !== true ? [server] : [] };
  }

  /** One that was loaded has no id in the answer. The first answer counts. */
  #opened(result: Loose, error: string | undefined): readonly Heard[] {
    if (this.#state.session !== null) return [];
    const { conversation } = this.#start;
    if (error !== undefined) return this.#notOpened(error);
    const isLoaded = conversation !== null && !this.#state.isLost;
    const session = nameOf(result["sessionId"]) || (isLoaded ? conversation : null);
    if (session === null) return [{ over: "failed", reason: `${this.#agent.title} did not begin: it gave no conversation.` }];
    this.#set({ session, isHistory: isLoaded && this.#agent.afterHistory !== undefined });
    const { version } = this.#state;
    const model = nameOf(record(result["models"])["currentModelId"]) || this.#start.model;
    return [{ conversation: session }, { event: { type: "started", agent: this.#agent.name, version, model, conversation: session } }];
  }

  #notOpened(error: string): readonly Heard[] {
    const { conversation } = this.#start;
    if (conversation === null || this.#state.isLost) return [{ over: "failed", reason: `${this.#agent.title} did not begin: ${error}` }];
    this.#set({ isLost: true });
    const lost = `${this.#agent.title} can't go on with the conversation ${conversation}, and begins a new one: ${error}`;
    return [{ event: { type: "error", text: lost, passing: true } }, { write: this.#open() }];
  }

  #updated(update: Loose): readonly Heard[] {
    const kind = update["sessionUpdate"];
    if (this.#state.isHistory) {
      this.#set({ isHistory: kind !== this.#agent.afterHistory });
      return [];
    }
    switch (kind) {
      case "agent_message_chunk":
        return [...this.#began(), ...this.#speaks("message", text(record(update["content"])["text"]))];
      case "agent_thought_chunk":
        return [...this.#began(), ...this.#speaks("thinking", text(record(update["content"])["text"]))];
      case "tool_call":
      case "tool_call_update":
        return [...this.#began(), ...this.#spoken(), ...this.#called(update)];
      case "user_message_chunk":
      case "plan":
        return this.#began();
      default:
        return [];
    }
  }

  /** The first thing it does in a turn shows that it has the message. */
  #began(): readonly Heard[] {
    const { prompt, begun } = this.#state;
    if (prompt === null || begun) return [];
    this.#set({ begun: true });
    return [{ delivered: prompt }, { event: { type: "turn", state: "began" } }];
  }

  #speaks(kind: "message" | "thinking", piece: string): readonly Heard[] {
    const before = this.#state.speech;
    const isMore = before !== null && before.kind === kind && before.text.length + piece.length <= EVENT_TEXT_CHARACTERS;
    const events = isMore ? [] : this.#spoken();
    this.#set({ speech: { kind, text: `${isMore ? before.text : ""}${piece}` } });
    return events;
  }

  #spoken(): readonly Heard[] {
    const { speech } = this.#state;
    if (speech === null) return [];
    this.#set({ speech: null, ...(speech.kind === "message" ? { lastWords: speech.text } : {}) });
    return speech.kind === "message" ? said(speech.text) : thought(speech.text);
  }

  #called(update: Loose): readonly Heard[] {
    const call = nameOf(update["toolCallId"]);
    const known = entry(this.#state.calls, call);
    const tool = toolOf(update) ?? known?.tool ?? "other";
    const title = nameOf(update["title"]) || (known?.title ?? "");
    const { events, told } = callEvents(call, tool, title, update, known?.told ?? false);
    const isDone = update["status"] === "completed";
    const isOver = isDone || update["status"] === "failed";
    const calls = this.#state.calls;
    this.#set({ calls: isOver ? without(calls, call) : withEntry(calls, call, { ...known, tool, title, told }) });
    if (!isOver) return events;
    const isUnasked = this.#agent.asks === true && isDone && known?.answer !== true && ACTS.has(tool);
    const did = isUnasked ? askedActions(tool, { title, ...update }).map((unasked) => ({ unasked, tool })) : [];
    return [...events, toolResult(call, tool, isDone, outputOf(update)), ...did];
  }

  #asked(id: string, method: string, params: Loose): readonly Heard[] {
    if (method !== "session/request_permission") return [{ write: rpc.unknown(id, method) }];
    if (params["sessionId"] !== this.#state.session) return [{ write: outcome(id, undefined) }];
    const asked = record(params["toolCall"]);
    const told = [...this.#began(), ...this.#spoken(), ...this.#called({ ...asked, status: "in_progress" })];
    const call = nameOf(asked["toolCallId"]);
    const reply = answerOptions(params["options"]);
    if (isOfGateway(asked)) {
      this.#note(call, true);
      return [...told, { write: outcome(id, reply["allow"]) }];
    }
    const put = question(askedActions(entry(this.#state.calls, call)?.tool ?? "other", asked), call || null, reply);
    const refusal = refusalOf(this.#state.questions, put);
    if (refusal !== undefined)
      return [...told, { event: { type: "error", text: refusal, passing: true } }, { write: outcome(id, reply["reject"]) }];
    this.#set({ questions: withQuestion(this.#state.questions, id, put) });
    return [...told, ...requestsOf(this.#state.questions, id)];
  }

  #ended(message: string, result: Loose, error: string | undefined): readonly Heard[] {
    const { begun, calls } = this.#state;
    const refused: readonly Heard[] =
      error !== undefined && !begun ? [{ refused: message, reason: `${this.#agent.title} did not take it: ${error}` }] : [];
    const events: readonly Heard[] = [
      ...(refused.length > 0 ? refused : this.#began()),
      ...this.#spoken(),
      // Some agents say nothing more of a call that was denied.
      ...Object.entries(calls).map(([call, { tool, answer }]) =>
        toolResult(call, tool, false, answer === false ? "It was not allowed." : "Its turn ended before it did."),
      ),
      ...usageOf(result),
      { event: { type: "turn", state: "ended" } },
    ];
    this.#set({ prompt: null, begun: false, calls: {}, questions: {} });
    return [...events, ...this.#verdict(nameOf(result["stopReason"]), error)];
  }

  #verdict(stopReason: string, error: string | undefined): readonly Heard[] {
    if (error === undefined && stopReason === "cancelled") return [{ turnEnded: true }];
    if (error === undefined && stopReason === "end_turn")
      return [{ event: { type: "finished", text: this.#state.lastWords } }, { turnEnded: true }];
    const reason = error ?? `${this.#agent.title} stopped before the end: ${stopReason || "it did not say why"}.`;
    return [{ event: { type: "error", text: reason, passing: false } }, { over: "failed", reason }];
  }
}

function outcome(id: string, optionId: string | undefined): string {
  const chosen = optionId === undefined || optionId === "" ? { outcome: "cancelled" } : { outcome: "selected", optionId };
  return rpc.result(id, { outcome: chosen });
}

/** Of the whole turn: as the protocol's draft has it, or as Gemini CLI tells it. */
function usageOf(result: Loose): readonly Heard[] {
  const usage = record(result["usage"]);
  const quota = record(record(record(result["_meta"])["quota"])["token_count"]);
  const input = number(usage["inputTokens"] ?? quota["input_tokens"]);
  if (input === undefined) return [];
  const tokens = {
    inputTokens: input,
    outputTokens: number(usage["outputTokens"] ?? quota["output_tokens"]) ?? 0,
    cacheReadTokens: number(usage["cachedReadTokens"]) ?? 0,
    cacheWriteTokens: number(usage["cachedWriteTokens"]) ?? 0,
  };
  return [{ event: { type: "usage", ...tokens, contextTokens: null } }];
}
