/**
 * pi over its stdin and stdout (`pi --mode rpc`). A prompt that comes while it works is put before its next request to the model. pi
 * has no permissions of its own; an extension of ours (integrations/pi) asks before each tool call, and offers Vivarium's tools.
 */
import { createHash } from "node:crypto";
import type { ToolKind } from "../../../base/schema/run.ts";
import type { Adapter, AgentStart, Heard, Session } from "../adapter.ts";
import { list, number, parseObject, record, text, type Loose } from "../loose-json.ts";
import { PI_PROVIDERS, piLaunch } from "./pi-launch.ts";
import { unaskedReason } from "../unasked.ts";
import { decided, question, refusalOf, requestsOf, withAllowed, withQuestion, type AskedAction, type Questions } from "./questions.ts";
import {
  contentText,
  endedWith,
  type Entries,
  entry,
  lastWordsOf,
  lineOf,
  messageText,
  nameOf,
  raw,
  said,
  thought,
  toolCall,
  toolResult,
  waitsFor,
  withEntry,
  without,
} from "./wire.ts";

const STATE = "state";
const SETTLED = "settled";
const MESSAGE = "message ";
/** A prompt is answered a little later than a question that comes right behind it: the second answer is surely later. */
const PROBES = ["probe", "probe again"] as const;

const KINDS: Readonly<Record<string, ToolKind>> = {
  bash: "command",
  edit: "edit",
  write: "edit",
  read: "read",
  ls: "read",
  grep: "search",
  find: "search",
};
/** Tools of the gateway, which judges them itself: pi has no other extension, so no other tool is called so. */
const OWN_TOOLS = "vivarium_";
const POLICY_TOOLS: Readonly<Record<string, string>> = { find: "glob" };

type PiState = {
  /** The extension of ours is there. */
  readonly guarded: boolean;
  readonly conversation: string | null;
  /** Messages that were written and are not in the conversation yet: digests of their texts, by id. */
  readonly sent: Entries<string>;
  /** Those of them that pi said it took. */
  readonly taken: readonly string[];
  /** Those of them that may never have been written. */
  readonly doubtful: readonly string[];
  readonly busy: boolean;
  /** Its turn was interrupted: some versions call that an error. */
  readonly interrupted: boolean;
  readonly calls: Entries<string>;
  readonly questions: Questions;
  /** Calls without a result that the policy allowed. */
  readonly allowed: Entries<true>;
  readonly lastError: string;
  readonly waiting: "rate_limit" | "retry" | null;
  /** How its last request to a model ended, and its words or its error. */
  readonly last: { readonly reason: string; readonly text: string };
};

const FRESH: PiState = {
  guarded: false,
  conversation: null,
  sent: {},
  taken: [],
  doubtful: [],
  busy: false,
  interrupted: false,
  calls: {},
  questions: {},
  allowed: {},
  lastError: "",
  waiting: null,
  last: { reason: "stop", text: "" },
};

export const pi: Adapter = {
  name: "pi",
  title: "pi",
  program: "pi",
  abilities: { messages: "tool", interrupt: true, resume: true, asks: true, tools: "plugin" },
  providers: PI_PROVIDERS,
  // It finds models by parts of their names.
  namedModel: () => "own",
  launch: piLaunch,
  session: (start, state) => new PiSession(start, (state as PiState | undefined) ?? FRESH),
};

const digest = (words: string): string => createHash("sha256").update(words).digest("base64url").slice(0, 22);

class PiSession implements Session {
  readonly #start: AgentStart;
  #state: PiState;

  constructor(start: AgentStart, state: PiState) {
    this.#start = start;
    this.#state = state;
  }

  get state(): PiState {
    return this.#state;
  }

  #set(patch: Partial<PiState>): void {
    this.#state = { ...this.#state, ...patch };
  }

  begin(): readonly Heard[] {
    return [{ write: lineOf({ type: "get_state", id: STATE }) }];
  }

  /** As a prompt in every case: pi itself knows whether it works just now. */
  message(id: string, words: string): string | undefined {
    const { guarded, conversation, sent } = this.#state;
    if (!guarded || conversation === null) return undefined;
    const message = messageText(this.#start, id, words);
    this.#set({ sent: withEntry(sent, id, digest(message)) });
    return lineOf({ type: "prompt", id: `${MESSAGE}${id}`, message, streamingBehavior: "steer" });
  }

  probe(): string {
    const { sent, taken } = this.#state;
    this.#set({ doubtful: Object.keys(sent).filter((id) => !taken.includes(id)) });
    return lineOf({ type: "get_state", id: PROBES[0] });
  }

  interrupt(): string {
    this.#set({ interrupted: this.#state.busy });
    return lineOf({ type: "abort" });
  }

  pending(): readonly Heard[] {
    return requestsOf(this.#state.questions);
  }

  answer(request: string, allowed: boolean, reason: string): string {
    const { left, settled } = decided(this.#state.questions, request, allowed);
    this.#set({ questions: left, allowed: withAllowed(this.#state.allowed, settled, allowed) });
    return settled === undefined ? "" : verdictLine(settled.id, allowed, reason);
  }

  line(line: string): readonly Heard[] {
    // Each of these repeats all that was said so far, and is as long as that.
    if (line.startsWith('{"type":"message_update"') || line.startsWith('{"type":"turn_end"')) return [];
    if (line.startsWith('{"type":"agent_end"')) return this.#probe();
    const heard = parseObject(line);
    if (heard === undefined || typeof heard["type"] !== "string") return raw("stdout", line);
    return this.#heard(heard["type"], heard) ?? (isKnown(heard["type"]) ? [] : raw("stdout", line));
  }

  errorLine(line: string): readonly Heard[] {
    this.#set({ lastError: lastWordsOf(line) || this.#state.lastError });
    return raw("stderr", line);
  }

  end(exitCode: number | null): readonly Heard[] {
    return endedWith("pi", exitCode, this.#state.lastError);
  }

  #heard(type: string, heard: Loose): readonly Heard[] | undefined {
    switch (type) {
      case "response":
        return this.#answered(text(heard["id"]), heard);
      case "agent_start":
        return this.#began();
      case "message_start":
        return record(heard["message"])["role"] === "user" ? this.#read(contentText(record(heard["message"])["content"])) : [];
      case "message_end":
        return record(heard["message"])["role"] === "assistant" ? this.#spoke(record(heard["message"])) : [];
      case "tool_execution_start":
        return this.#called(nameOf(heard["toolCallId"]), nameOf(heard["toolName"]), heard["args"]);
      case "tool_execution_end":
        return this.#returned(nameOf(heard["toolCallId"]), nameOf(heard["toolName"]), heard);
      case "auto_retry_start":
        return this.#retries(text(heard["errorMessage"]), number(heard["delayMs"]));
      case "auto_retry_end":
      case "compaction_end":
        return [...this.#resumed(), ...(this.#state.busy ? this.#probe() : [])];
      case "agent_settled":
        return this.#settled();
      case "extension_ui_request":
        return this.#asked(text(heard["id"]), heard);
      case "extension_error":
        return [{ event: { type: "error", text: text(heard["error"]), passing: true } }];
      default:
        return undefined;
    }
  }

  #answered(id: string, { success, data, error }: Loose): readonly Heard[] {
    if (id === STATE) return this.#opened(record(data));
    if (id === SETTLED) {
      const { isStreaming, isCompacting } = record(data);
      return isStreaming === false && isCompacting !== true && this.#state.waiting === null ? this.#settled() : [];
    }
    if (id === PROBES[0]) return [{ write: lineOf({ type: "get_state", id: PROBES[1] }) }];
    if (id === PROBES[1]) return this.#probed();
    const message = id.startsWith(MESSAGE) ? id.slice(MESSAGE.length) : "";
    if (entry(this.#state.sent, message) === undefined) return [];
    if (success !== false) {
      this.#set({ taken: [...this.#state.taken, message] });
      return [];
    }
    this.#forget([message]);
    const reason = text(error) || "an error without a text";
    const ended: readonly Heard[] = this.#state.busy ? [] : [{ over: "failed", reason: `pi did not begin: ${reason}` }];
    return [{ refused: message, reason: `pi did not take it: ${reason}` }, ...ended];
  }

  #probed(): readonly Heard[] {
    const { sent, taken, doubtful, busy } = this.#state;
    const lost = doubtful.filter((id) => entry(sent, id) !== undefined && !taken.includes(id));
    this.#forget(lost);
    this.#set({ doubtful: [] });
    const isIdle = !busy && lost.length > 0 && Object.keys(this.#state.sent).length === 0;
    return [...lost.map((id) => ({ lost: id })), ...(isIdle ? [{ turnEnded: true } as const] : [])];
  }

  #opened(data: Loose): readonly Heard[] {
    const conversation = nameOf(data["sessionId"]);
    if (this.#state.conversation !== null || conversation === "") return [];
    this.#set({ conversation });
    const model = nameOf(record(data["model"])["id"]) || null;
    return [{ conversation }, { event: { type: "started", agent: "pi", version: null, model, conversation } }];
  }

  #began(): readonly Heard[] {
    if (this.#state.busy) return [];
    this.#set({ busy: true, interrupted: false, last: FRESH.last });
    return [{ event: { type: "turn", state: "began" } }];
  }

  /** A user's message is in the conversation: ours by its text, or the oldest if pi changed it. */
  #read(words: string): readonly Heard[] {
    const { sent } = this.#state;
    const sum = digest(words);
    const id = Object.keys(sent).find((each) => sent[each] === sum) ?? Object.keys(sent)[0];
    if (id === undefined) return [];
    this.#forget([id]);
    return [{ delivered: id }];
  }

  #forget(ids: readonly string[]): void {
    const { sent, taken } = this.#state;
    this.#set({ sent: ids.reduce((left, id) => without(left, id), sent), taken: taken.filter((id) => !ids.includes(id)) });
  }

  #spoke(message: Loose): readonly Heard[] {
    const blocks = list(message["content"]).map(record);
    const reason = nameOf(message["stopReason"]);
    const words = blocks.map((block) => (block["type"] === "text" ? text(block["text"]) : "")).join("");
    this.#set({ last: { reason, text: (reason === "error" ? text(message["errorMessage"]) : words).slice(0, 4096) } });
    if (reason === "error") return [];
    return [...this.#resumed(), ...blocks.flatMap(blockEvents), ...usageOf(record(message["usage"]))];
  }

  #called(call: string, tool: string, input: unknown): readonly Heard[] {
    this.#set({ calls: withEntry(this.#state.calls, call, tool) });
    return [toolCall(call, tool, entry(KINDS, tool) ?? "other", input)];
  }

  #returned(call: string, tool: string, heard: Loose): readonly Heard[] {
    const isAllowed = entry(this.#state.allowed, call) === true;
    this.#set({ calls: without(this.#state.calls, call), allowed: without(this.#state.allowed, call) });
    const ok = heard["isError"] !== true;
    const result = toolResult(call, tool, ok, contentText(record(heard["result"])["content"]));
    return ok && !isAllowed && !tool.startsWith(OWN_TOOLS) ? [result, { breach: unaskedReason("pi", tool) }] : [result];
  }

  #retries(error: string, delay: number | undefined): readonly Heard[] {
    const waiting = waitsFor(error);
    this.#set({ waiting });
    const until = delay === undefined ? null : new Date(Date.now() + delay).toISOString();
    return [{ event: { type: "waiting", for: waiting, until, text: error } }];
  }

  #resumed(): readonly Heard[] {
    const { waiting } = this.#state;
    if (waiting === null) return [];
    this.#set({ waiting: null });
    return [{ event: { type: "resumed", for: waiting } }];
  }

  /** Whether it has really ended: a version that does not say so by itself may try again, or make room first. */
  #probe(): readonly Heard[] {
    return [{ write: lineOf({ type: "get_state", id: SETTLED }) }];
  }

  #settled(): readonly Heard[] {
    const { busy, interrupted, calls, last, taken } = this.#state;
    if (!busy) return [];
    this.#set({ busy: false, calls: {}, questions: {} });
    this.#forget(taken);
    const events: Heard[] = [
      ...this.#resumed(),
      ...Object.entries(calls).map(([call, tool]) => toolResult(call, tool, false, "Its turn ended before it did.")),
      ...taken.map((id) => ({ refused: id, reason: "pi put it aside unread, because its turn was interrupted." })),
      { event: { type: "turn", state: "ended" } },
    ];
    if (last.reason === "error" && !interrupted)
      return [
        ...events,
        { event: { type: "error", text: last.text, passing: false } },
        { over: "failed", reason: last.text || "pi gave up." },
      ];
    const finished: readonly Heard[] = ["stop", "length"].includes(last.reason) ? [{ event: { type: "finished", text: last.text } }] : [];
    // A message that is under way begins the next turn.
    return [...events, ...finished, ...(Object.keys(this.#state.sent).length === 0 ? [{ turnEnded: true } as const] : [])];
  }

  #asked(id: string, heard: Loose): readonly Heard[] {
    if (heard["method"] === "setStatus") {
      if (heard["statusKey"] === "vivarium") this.#set({ guarded: true });
      return [];
    }
    if (!["select", "confirm", "input", "editor"].includes(text(heard["method"]))) return [];
    const asked = heard["title"] === "vivarium" ? parseObject(text(heard["placeholder"])) : undefined;
    if (asked === undefined) return [{ write: lineOf({ type: "extension_ui_response", id, cancelled: true }) }];
    const put = question([actionOf(asked)], nameOf(asked["call"]) || null);
    const refusal = refusalOf(this.#state.questions, put);
    if (refusal !== undefined) return [{ write: verdictLine(id, false, refusal) }];
    this.#set({ questions: withQuestion(this.#state.questions, id, put) });
    return requestsOf(this.#state.questions, id);
  }
}

function verdictLine(id: string, allowed: boolean, reason: string): string {
  return lineOf({ type: "extension_ui_response", id, value: JSON.stringify({ allowed, reason }) });
}

function actionOf(asked: Loose): AskedAction {
  const given = nameOf(asked["tool"]) || "unknown";
  const tool = entry(POLICY_TOOLS, given) ?? given;
  const argument = asked["argument"];
  return typeof argument === "string" ? { kind: "tool", tool, argument } : { kind: "tool", tool };
}

function blockEvents(block: Loose): readonly Heard[] {
  if (block["type"] === "thinking") return thought(text(block["thinking"]));
  return block["type"] === "text" ? said(text(block["text"])) : [];
}

function usageOf(usage: Loose): readonly Heard[] {
  const input = number(usage["input"]);
  if (input === undefined) return [];
  const [read, written] = [number(usage["cacheRead"]) ?? 0, number(usage["cacheWrite"]) ?? 0];
  const tokens = { inputTokens: input, outputTokens: number(usage["output"]) ?? 0, cacheReadTokens: read, cacheWriteTokens: written };
  return [{ event: { type: "usage", ...tokens, contextTokens: input + read + written } }];
}

const KNOWN =
  /^(?:agent|turn|message|tool|tool_execution|queue|compaction|auto_retry|extension|entry|session|model|thinking|bash|summarization)_|^(?:session|bash|user|notice)$/;

function isKnown(type: string): boolean {
  return KNOWN.test(type);
}
