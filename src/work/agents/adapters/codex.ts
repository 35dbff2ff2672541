/**
 * Codex as a server over its stdin and stdout (`codex app-server`). A message goes in by `turn/start`, which also steers a turn that
 * runs: so a message that comes just when a turn ends begins the next one. Codex asks before every command and every change of a file.
 */
import type { Adapter, AgentStart, Heard, Session } from "../adapter.ts";
import { number, record, text, type Loose } from "../loose-json.ts";
import { commandOf, fileActions, isKnown, itemEnded, itemStarted, unaskedActions, type FileChanges } from "./codex-items.ts";
import { codexLaunch } from "./codex-launch.ts";
import { RpcLines, rpcMessage } from "./json-rpc.ts";
import { decided, question, refusalOf, requestsOf, withAllowed, withQuestion, type Question, type Questions } from "./questions.ts";
import {
  endedWith,
  type Entries,
  entry,
  lastWordsOf,
  messageText,
  nameOf,
  raw,
  toolCall,
  toolResult,
  waitsFor,
  withEntry,
  without,
} from "./wire.ts";

const rpc = new RpcLines({});
const INITIALIZE = "initialize";
const THREAD = "thread";
const MESSAGE = "message ";
const PROBE = "probe";

type CodexState = {
  readonly version: string | null;
  /** The conversation that was to go on is not there any more. */
  readonly isLost: boolean;
  readonly thread: string | null;
  readonly turn: string | null;
  /** Messages that were written, without an answer. */
  readonly sent: readonly string[];
  /** Those of them that may never have been written. */
  readonly doubtful: readonly string[];
  /** Messages that it took, by id, with the turn they belong to; it has not read them yet. */
  readonly taken: Entries<string>;
  /** Its turn has ended, but a message is under way that may begin the next. */
  readonly ending: boolean;
  /** The turn that is about to begin is to be interrupted. */
  readonly interrupting: boolean;
  /** Tools by call, of calls without a result. */
  readonly calls: Entries<string>;
  /** What calls without a result want to change. */
  readonly changes: Entries<FileChanges>;
  readonly questions: Questions;
  /** Calls without a result that the policy allowed. */
  readonly allowed: Entries<true>;
  readonly lastError: string;
  readonly waiting: "rate_limit" | "retry" | null;
};

const FRESH: CodexState = {
  version: null,
  isLost: false,
  thread: null,
  turn: null,
  sent: [],
  doubtful: [],
  taken: {},
  ending: false,
  interrupting: false,
  calls: {},
  changes: {},
  questions: {},
  allowed: {},
  lastError: "",
  waiting: null,
};

export const codex: Adapter = {
  name: "codex",
  title: "Codex",
  program: "codex",
  abilities: { messages: "tool", interrupt: true, resume: true, asks: true, tools: "mcp" },
  providers: ["openai"],
  namedModel: (model) => ({ provider: "openai", model }),
  launch: codexLaunch,
  session: (start, state) => new CodexSession(start, (state as CodexState | undefined) ?? FRESH),
};

class CodexSession implements Session {
  readonly #start: AgentStart;
  #state: CodexState;

  constructor(start: AgentStart, state: CodexState) {
    this.#start = start;
    this.#state = state;
  }

  get state(): CodexState {
    return this.#state;
  }

  #set(patch: Partial<CodexState>): void {
    this.#state = { ...this.#state, ...patch };
  }

  begin(): readonly Heard[] {
    const params = { clientInfo: { name: "vivarium", title: "Vivarium", version: "1" }, capabilities: null };
    return [{ write: rpc.request(INITIALIZE, "initialize", params) }];
  }

  message(id: string, words: string): string | undefined {
    const { thread, sent } = this.#state;
    if (thread === null) return undefined;
    this.#set({ sent: [...sent, id] });
    const input = [{ type: "text", text: messageText(this.#start, id, words), text_elements: [] }];
    return rpc.request(`${MESSAGE}${id}`, "turn/start", { threadId: thread, clientUserMessageId: id, input });
  }

  /** What is about one thread it does in order. */
  probe(): string | undefined {
    const { thread, sent } = this.#state;
    if (thread === null) return undefined;
    this.#set({ doubtful: sent });
    return rpc.request(PROBE, "thread/read", { threadId: thread, includeTurns: false });
  }

  interrupt(): string {
    const { thread, turn, sent, taken } = this.#state;
    if (turn === null) this.#set({ interrupting: sent.length > 0 || Object.keys(taken).length > 0 });
    return thread === null || turn === null ? "" : this.#interruption(thread, turn);
  }

  #interruption(thread: string, turn: string): string {
    return rpc.request(`interrupt ${turn}`, "turn/interrupt", { threadId: thread, turnId: turn });
  }

  pending(): readonly Heard[] {
    return requestsOf(this.#state.questions);
  }

  answer(request: string, allowed: boolean): string {
    const { left, settled } = decided(this.#state.questions, request, allowed);
    this.#set({ questions: left, allowed: withAllowed(this.#state.allowed, settled, allowed) });
    return settled === undefined ? "" : rpc.result(settled.id, { decision: allowed ? "accept" : "decline" });
  }

  line(line: string): readonly Heard[] {
    const heard = rpcMessage(line);
    if (heard === undefined) return raw("stdout", line);
    if (heard.kind === "answer") return this.#answered(heard.id, heard.result, heard.error);
    if (heard.kind === "request") return this.#asked(heard.id, heard.method, heard.params);
    return this.#told(heard.method, heard.params) ?? (isKnown(heard.method) ? [] : raw("stdout", line));
  }

  errorLine(line: string): readonly Heard[] {
    this.#set({ lastError: lastWordsOf(line) || this.#state.lastError });
    return raw("stderr", line);
  }

  end(exitCode: number | null): readonly Heard[] {
    return endedWith("Codex", exitCode, this.#state.lastError);
  }

  #answered(id: string, result: Loose, error: string | undefined): readonly Heard[] {
    if (id === INITIALIZE) return this.#initialised(result, error);
    if (id === THREAD) return this.#opened(result, error);
    if (id === PROBE) return this.#probed();
    return id.startsWith(MESSAGE) ? this.#took(id.slice(MESSAGE.length), record(result["turn"]), error) : [];
  }

  /** Asked a second time it says so by an error, which means nothing. */
  #initialised(result: Loose, error: string | undefined): readonly Heard[] {
    if (this.#state.version !== null) return [];
    if (error !== undefined) return [{ over: "failed", reason: `Codex did not start: ${error}` }];
    this.#set({ version: /\/(\S+)/.exec(text(result["userAgent"]))?.[1] ?? "unknown" });
    const { conversation } = this.#start;
    return [{ write: rpc.notification("initialized") }, { write: conversation === null ? this.#open() : this.#reopen(conversation) }];
  }

  #open(): string {
    return rpc.request(THREAD, "thread/start", this.#settings());
  }

  #reopen(threadId: string): string {
    return rpc.request(THREAD, "thread/resume", { threadId, excludeTurns: true, ...this.#settings() });
  }

  /** The walls around it are ours, so it needs none of its own; "untrusted" makes it ask about everything. */
  #settings(): object {
    const { project, model } = this.#start;
    return { cwd: project, approvalPolicy: "untrusted", sandbox: "danger-full-access", ...(model === null ? {} : { model }) };
  }

  /** The first answer counts: a request that was written twice opens two threads, and one stays unused. */
  #opened(result: Loose, error: string | undefined): readonly Heard[] {
    if (this.#state.thread !== null) return [];
    const thread = nameOf(record(result["thread"])["id"]);
    if (error !== undefined || thread === "") return this.#notOpened(error ?? "it gave no conversation");
    this.#set({ thread });
    const { version } = this.#state;
    const model = nameOf(result["model"]) || null;
    return [{ conversation: thread }, { event: { type: "started", agent: "codex", version, model, conversation: thread } }];
  }

  #notOpened(error: string): readonly Heard[] {
    const { conversation } = this.#start;
    if (conversation === null || this.#state.isLost) return [{ over: "failed", reason: `Codex did not begin: ${error}` }];
    this.#set({ isLost: true });
    const lost = `Codex can't go on with the conversation ${conversation}, and begins a new one: ${error}`;
    return [{ event: { type: "error", text: lost, passing: true } }, { write: this.#open() }];
  }

  #took(id: string, turn: Loose, error: string | undefined): readonly Heard[] {
    if (!this.#state.sent.includes(id)) return [];
    this.#set({ sent: this.#state.sent.filter((each) => each !== id) });
    if (error !== undefined) return [{ refused: id, reason: `Codex did not take it: ${error}` }, ...this.#settle()];
    this.#set({ taken: withEntry(this.#state.taken, id, nameOf(turn["id"])) });
    return [];
  }

  #probed(): readonly Heard[] {
    const { sent, doubtful } = this.#state;
    const lost = sent.filter((id) => doubtful.includes(id));
    this.#set({ sent: sent.filter((id) => !lost.includes(id)), doubtful: [] });
    return [...lost.map((id) => ({ lost: id })), ...this.#settle()];
  }

  #told(method: string, params: Loose): readonly Heard[] | undefined {
    switch (method) {
      case "turn/started":
        return this.#isOurs(params) ? this.#began(record(params["turn"])) : [];
      case "turn/completed":
        return this.#isOurs(params) ? this.#completed(record(params["turn"])) : [];
      case "item/started":
        return [...this.#resumed(), ...this.#started(record(params["item"]))];
      case "item/completed":
        return [...this.#resumed(), ...this.#ended(record(params["item"]))];
      case "item/commandExecution/outputDelta":
        return [{ event: { type: "command_output", call: nameOf(params["itemId"]), stream: "stdout", text: text(params["delta"]) } }];
      case "item/commandExecution/terminalInteraction":
        return this.#typed(nameOf(params["itemId"]), text(params["stdin"]));
      case "thread/tokenUsage/updated":
        return this.#isOurs(params) ? this.#used(record(record(params["tokenUsage"])["last"])) : [];
      case "serverRequest/resolved":
        this.#set({ questions: without(this.#state.questions, JSON.stringify(params["requestId"] ?? null)) });
        return [];
      case "error":
        return params["willRetry"] === true ? this.#retries(record(params["error"])) : [];
      case "warning":
      case "guardianWarning":
        return [{ event: { type: "error", text: text(params["message"]), passing: true } }];
      default:
        return undefined;
    }
  }

  #isOurs(params: Loose): boolean {
    return params["threadId"] === this.#state.thread;
  }

  #began(turn: Loose): readonly Heard[] {
    const { thread, interrupting } = this.#state;
    const id = nameOf(turn["id"]);
    this.#set({ turn: id, ending: false, interrupting: false });
    const stop = interrupting && thread !== null ? [{ write: this.#interruption(thread, id) }] : [];
    return [{ event: { type: "turn", state: "began" } }, ...stop];
  }

  #started(item: Loose): readonly Heard[] {
    const call = nameOf(item["id"]);
    const { events, tool, changes } = itemStarted(call, item);
    if (tool !== undefined) this.#set({ calls: withEntry(this.#state.calls, call, tool) });
    if (changes !== undefined) this.#set({ changes: withEntry(this.#state.changes, call, changes) });
    return [...events, ...this.#read(item)];
  }

  #ended(item: Loose): readonly Heard[] {
    const call = nameOf(item["id"]);
    const isOpen = entry(this.#state.calls, call) !== undefined;
    const isAllowed = entry(this.#state.allowed, call) === true;
    this.#set({
      calls: without(this.#state.calls, call),
      changes: without(this.#state.changes, call),
      allowed: without(this.#state.allowed, call),
    });
    return [...itemEnded(call, item, isOpen), ...(isAllowed ? [] : unaskedActions(item, this.#start.project)), ...this.#read(item)];
  }

  /** A message of ours is in the conversation. */
  #read(item: Loose): readonly Heard[] {
    const id = nameOf(item["clientId"]);
    const { sent, taken } = this.#state;
    if (item["type"] !== "userMessage" || !(sent.includes(id) || entry(taken, id) !== undefined)) return [];
    this.#set({ sent: sent.filter((each) => each !== id), taken: without(taken, id) });
    return [{ delivered: id }];
  }

  /** Into a program that runs already: of that it does not ask. */
  #typed(call: string, stdin: string): readonly Heard[] {
    if (stdin === "") return [];
    return [toolCall(call, "write_stdin", "command", { stdin }), toolResult(call, "write_stdin", true, "")];
  }

  #used(last: Loose): readonly Heard[] {
    const input = number(last["inputTokens"]);
    // What it tells without a turn is of a conversation of before.
    if (input === undefined || this.#state.turn === null) return [];
    const [read, written] = [number(last["cachedInputTokens"]) ?? 0, number(last["cacheWriteInputTokens"]) ?? 0];
    const tokens = {
      inputTokens: Math.max(0, input - read - written),
      cacheReadTokens: read,
      cacheWriteTokens: written,
      contextTokens: input,
    };
    return [{ event: { type: "usage", ...tokens, outputTokens: number(last["outputTokens"]) ?? 0 } }];
  }

  #retries(error: Loose): readonly Heard[] {
    const why = text(error["additionalDetails"]) || text(error["message"]);
    const waiting = waitsFor(why);
    this.#set({ waiting });
    return [{ event: { type: "waiting", for: waiting, until: null, text: `${why} (${text(error["message"])})` } }];
  }

  #resumed(): readonly Heard[] {
    const { waiting } = this.#state;
    if (waiting === null) return [];
    this.#set({ waiting: null });
    return [{ event: { type: "resumed", for: waiting } }];
  }

  #completed(turn: Loose): readonly Heard[] {
    const { calls, taken, sent } = this.#state;
    const id = nameOf(turn["id"]);
    const unread = Object.keys(taken).filter((each) => taken[each] === id);
    const events: Heard[] = [
      ...this.#resumed(),
      ...Object.entries(calls).map(([call, tool]) => toolResult(call, tool, false, "Its turn ended before it did.")),
      ...unread.map((each) => ({ refused: each, reason: "Codex threw it away unread, because its turn was interrupted." })),
      { event: { type: "turn", state: "ended" } },
    ];
    const left = Object.fromEntries(Object.entries(taken).filter(([each]) => !unread.includes(each)));
    this.#set({
      turn: null,
      calls: {},
      changes: {},
      questions: {},
      taken: left,
      ending: true,
      interrupting: sent.length > 0 && this.#state.interrupting,
    });
    return [...events, ...this.#verdict(turn)];
  }

  #verdict(turn: Loose): readonly Heard[] {
    if (turn["status"] === "failed") {
      const reason = text(record(turn["error"])["message"]) || "Codex gave up.";
      return [{ event: { type: "error", text: reason, passing: false } }, { over: "failed", reason }];
    }
    const last = record((Array.isArray(turn["items"]) ? turn["items"] : []).findLast((item) => record(item)["type"] === "agentMessage"));
    const finished: readonly Heard[] = turn["status"] === "completed" ? [{ event: { type: "finished", text: text(last["text"]) } }] : [];
    return [...finished, ...this.#settle()];
  }

  /** Its turn has ended for good once no message is under way that would begin another. */
  #settle(): readonly Heard[] {
    const { ending, sent, taken } = this.#state;
    if (!ending || sent.length > 0 || Object.keys(taken).length > 0) return [];
    this.#set({ ending: false });
    return [{ turnEnded: true }];
  }

  #asked(id: string, method: string, params: Loose): readonly Heard[] {
    switch (method) {
      case "item/commandExecution/requestApproval":
        return this.#ask(id, question([commandOf(params, this.#start.project)], nameOf(params["itemId"])));
      case "item/fileChange/requestApproval": {
        const call = nameOf(params["itemId"]);
        return this.#ask(id, question(fileActions(entry(this.#state.changes, call) ?? {}), call));
      }
      case "item/permissions/requestApproval":
        return [{ write: rpc.result(id, { permissions: {}, scope: "turn" }) }];
      case "item/tool/requestUserInput":
        return [{ write: rpc.result(id, { answers: {} }) }];
      case "mcpServer/elicitation/request":
        return [{ write: rpc.result(id, { action: "decline", content: null, _meta: null }) }];
      default:
        return [{ write: rpc.unknown(id, method) }];
    }
  }

  #ask(id: string, asked: Question): readonly Heard[] {
    const refusal = refusalOf(this.#state.questions, asked);
    if (refusal !== undefined)
      return [{ event: { type: "error", text: refusal, passing: true } }, { write: rpc.result(id, { decision: "decline" }) }];
    this.#set({ questions: withQuestion(this.#state.questions, id, asked) });
    return requestsOf(this.#state.questions, id);
  }
}
