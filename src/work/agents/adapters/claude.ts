/**
 * Claude Code, headless, over its stdin and stdout (stream-json). Messages go in between tool calls, and the program tells the fate of
 * each. Every tool call is a question to the server by a hook that the server itself answers: while no server is there the agent waits,
 * and a question that is never answered ends as a refusal.
 */
import { createHash } from "node:crypto";
import { GATEWAY_TOOLS_PATH } from "../../../base/schema/gateway.ts";
import type { RunEventBody } from "../../../base/schema/run.ts";
import type { Adapter, AgentStart, Heard, Launch, Session, SessionState } from "../adapter.ts";
import { list, number, parseObject, record, text, type Loose } from "../loose-json.ts";
import { unaskedReason } from "../unasked.ts";
import { refusalOfMore } from "./questions.ts";
import { actionOf, argumentOf, claudeTool, HARMLESS, kindOf, UNTOLD } from "./claude-tools.ts";
import { entry, lineOf, messageText, nameOf, raw, withEntry, without } from "./wire.ts";

/** Seconds a hook waits for the server; longer than any run. */
const HOOK_SECONDS = 7 * 86_400;
const HOOK = "policy";
const INITIALIZE = "vivarium-initialize";
/** It answers this with an error, in its turn. */
const PROBE = "vivarium-probe";
/** Names that it resolves itself. */
const ALIAS = /^(?:sonnet|opus|haiku|fable|mythos|best|opusplan|default)(?:\[1m\])?$/;
/** Of an id that it gives a question. */
const MOST_REQUEST_CHARACTERS = 256;
/** Of an input that goes back to it as it came. */
const MOST_ECHOED_CHARACTERS = 1024 ** 2;

interface ClaudeState extends SessionState {
  readonly initialised: boolean;
  readonly started: boolean;
  /** Message ids by the uuid that stands for them on the wire. */
  readonly messages: Readonly<Record<string, string>>;
  /** Of those, the ones that it says it has read. */
  readonly read: Readonly<Record<string, true>>;
  /** Tool names by call, of calls without a result. */
  readonly calls: Readonly<Record<string, string>>;
  /** Hook requests without an answer. */
  readonly requests: Readonly<Record<string, { readonly tool: string; readonly argument: string | null; readonly call: string | null }>>;
  /** Calls without a result that the policy allowed. */
  readonly allowed: Readonly<Record<string, true>>;
  readonly waiting: boolean;
  /** Tokens that the model read last. */
  readonly context: number | null;
  /** How often its turn was to be ended: each request needs an id of its own. */
  readonly interrupts?: number;
}

const FRESH: ClaudeState = {
  initialised: false,
  started: false,
  messages: {},
  read: {},
  calls: {},
  requests: {},
  allowed: {},
  waiting: false,
  context: null,
};

export const claude: Adapter = {
  name: "claude",
  title: "Claude Code",
  program: "claude",
  abilities: { messages: "tool", interrupt: true, resume: true, asks: true, tools: "mcp" },
  providers: ["anthropic"],
  namedModel: (name) => (ALIAS.test(name) ? "own" : { provider: "anthropic", model: name.replace(/\[1m\]$/, "") }),
  launch,
  session: (start, state) => new ClaudeSession(start, (state as ClaudeState | undefined) ?? FRESH),
};

function launch({ program, model, folder, gateway, policy, conversation }: AgentStart): Launch {
  const servers = { mcpServers: { vivarium: { type: "http", url: `${gateway}${GATEWAY_TOOLS_PATH}` } } };
  return {
    command: [
      program,
      "-p",
      "--input-format",
      "stream-json",
      "--output-format",
      "stream-json",
      "--verbose",
      "--replay-user-messages",
      "--permission-prompt-tool",
      "stdio",
      "--setting-sources",
      "user",
      "--strict-mcp-config",
      `--mcp-config=${JSON.stringify(servers)}`,
      `--append-system-prompt=${instructions(policy.text)}`,
      ...(model === null ? [] : [`--model=${model}`]),
      ...(policy.lackedTools.length === 0 ? [] : [`--disallowedTools=${policy.lackedTools.map(claudeTool).join(",")}`]),
      ...(conversation === null ? [] : [`--resume=${conversation}`]),
    ],
    env: {
      CLAUDE_CONFIG_DIR: `${folder}/claude`,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      // Walls are around it: it may work as root.
      IS_SANDBOX: "1",
      ENABLE_TOOL_SEARCH: "false",
      CLAUDE_CODE_TMPDIR: `${folder}/tmp`,
    },
    files: [{ path: "claude/settings.json", content: `${JSON.stringify({ cleanupPeriodDays: 3650 })}\n` }],
    keeps: ["claude/projects"],
    machineSettings: ["/etc/claude-code"],
    input: true,
  };
}

/** Settings and hooks of the project are not read, because they could widen what it may do; its notes are. */
function instructions(policy: string): string {
  return `${policy}\n\nThe project's own notes for agents are CLAUDE.md and AGENTS.md at its root: if they are there, read them before you begin.`;
}

/** The wire wants a uuid: always the same one for a message. */
function uuidOf(message: string): string {
  const hex = createHash("sha256").update(message).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

class ClaudeSession implements Session {
  readonly #start: AgentStart;
  #state: ClaudeState;

  constructor(start: AgentStart, state: ClaudeState) {
    this.#start = start;
    this.#state = state;
  }

  get state(): ClaudeState {
    return this.#state;
  }

  #set(patch: Partial<ClaudeState>): void {
    this.#state = { ...this.#state, ...patch } as ClaudeState;
  }

  begin(): readonly Heard[] {
    const hooks = { PreToolUse: [{ matcher: null, hookCallbackIds: [HOOK], timeout: HOOK_SECONDS }] };
    return [{ write: lineOf({ type: "control_request", request_id: INITIALIZE, request: { subtype: "initialize", hooks } }) }];
  }

  message(id: string, content: string): string | undefined {
    // Before that it knows no hooks, and would act without asking.
    if (!this.#state.initialised) return undefined;
    const uuid = uuidOf(id);
    this.#set({ messages: { ...this.#state.messages, [uuid]: id } });
    return lineOf({
      type: "user",
      uuid,
      message: { role: "user", content: [{ type: "text", text: messageText(this.#start, id, content) }] },
      parent_tool_use_id: null,
      session_id: "",
    });
  }

  probe(): string {
    return lineOf({ type: "control_request", request_id: PROBE, request: { subtype: "vivarium_probe" } });
  }

  interrupt(): string {
    const interrupts = (this.#state.interrupts ?? 0) + 1;
    this.#set({ interrupts });
    return lineOf({ type: "control_request", request_id: `vivarium-interrupt-${interrupts}`, request: { subtype: "interrupt" } });
  }

  pending(): readonly Heard[] {
    return Object.keys(this.#state.requests).map((request) => this.#asked(request));
  }

  #asked(request: string): Heard {
    const { tool, argument, call } = entry(this.#state.requests, request) ?? { tool: "unknown", argument: null, call: null };
    return { request, action: actionOf(tool, argument), call };
  }

  answer(request: string, allowed: boolean, reason: string): string {
    const call = entry(this.#state.requests, request)?.call ?? null;
    this.#set({
      requests: without(this.#state.requests, request),
      ...(allowed && call !== null ? { allowed: withEntry(this.#state.allowed, call, true) } : {}),
    });
    const output = { hookEventName: "PreToolUse", permissionDecision: allowed ? "allow" : "deny", permissionDecisionReason: reason };
    return lineOf({
      type: "control_response",
      response: { subtype: "success", request_id: request, response: { hookSpecificOutput: output } },
    });
  }

  line(line: string): readonly Heard[] {
    const heard = parseObject(line);
    if (heard === undefined) return raw("stdout", line);
    switch (heard["type"]) {
      case "system":
        return this.#system(heard);
      case "assistant":
        return this.#assistant(record(heard["message"]), heard["parent_tool_use_id"] !== null);
      case "user":
        return this.#user(heard);
      case "command_lifecycle":
        return this.#lifecycle(heard);
      case "control_request":
        return this.#controlRequest(text(heard["request_id"]), record(heard["request"]));
      case "control_cancel_request":
        this.#set({ requests: without(this.#state.requests, text(heard["request_id"])) });
        return [];
      case "control_response":
        return this.#controlResponse(text(record(heard["response"])["request_id"]));
      default:
        if (heard["subtype"] !== undefined && heard["total_cost_usd"] !== undefined) return this.#result(heard);
        return UNTOLD.has(text(heard["type"])) ? [] : raw("stdout", line);
    }
  }

  errorLine(line: string): readonly Heard[] {
    return line.startsWith("[claude-code:unrecognized_model]") ? [] : raw("stderr", line);
  }

  end(exitCode: number | null): readonly Heard[] {
    if (exitCode === 0) return [];
    return [{ over: "failed", reason: `Claude Code ended with ${exitCode ?? "a signal"}.` }];
  }

  #system(heard: Loose): readonly Heard[] {
    switch (heard["subtype"]) {
      // Said again before each turn.
      case "init": {
        const conversation = text(heard["session_id"]);
        if (this.#state.started) return [{ event: { type: "turn", state: "began" } }];
        this.#set({ started: true });
        return [
          { conversation },
          {
            event: {
              type: "started",
              agent: "claude",
              version: text(heard["claude_code_version"]) || null,
              model: text(heard["model"]) || null,
              conversation,
            },
          },
          { event: { type: "turn", state: "began" } },
        ];
      }
      case "api_retry":
        return this.#retry(heard);
      default:
        return [];
    }
  }

  #retry(heard: Loose): readonly Heard[] {
    const status = number(heard["error_status"] ?? heard["status"]);
    const delay = number(heard["retry_delay_ms"] ?? heard["retry_in_ms"]);
    const kind = status === 429 || status === 529 ? "rate_limit" : "retry";
    this.#set({ waiting: true });
    const until = delay === undefined ? null : new Date(Date.now() + delay).toISOString();
    return [
      {
        event: { type: "waiting", for: kind, until, text: `The model API answered ${status ?? "with an error"}; Claude Code tries again.` },
      },
    ];
  }

  #resumed(): Heard[] {
    if (!this.#state.waiting) return [];
    this.#set({ waiting: false });
    return [{ event: { type: "resumed", for: "rate_limit" } }];
  }

  #assistant(message: Loose, isInner: boolean): readonly Heard[] {
    const events: Heard[] = this.#resumed();
    for (const block of list(message["content"]).map(record)) {
      if (block["type"] === "thinking") events.push({ event: { type: "thinking", text: text(block["thinking"]) } });
      else if (block["type"] === "text" && !isInner)
        events.push({ event: { type: "message", from: "agent", text: text(block["text"]), message: null } });
      else if (block["type"] === "tool_use") {
        const [call, tool] = [nameOf(block["id"]), nameOf(block["name"])];
        this.#set({ calls: withEntry(this.#state.calls, call, tool) });
        events.push({ event: { type: "tool_call", call, tool, kind: kindOf(tool), input: json(block["input"]) } });
      }
    }
    const context = usageOf(record(message["usage"]), null)?.inputAll;
    // What it says of tokens here is only the size of what the model read.
    if (context !== undefined && !isInner) this.#set({ context });
    return events;
  }

  #user(heard: Loose): readonly Heard[] {
    const events: Heard[] = [];
    const id = entry(this.#state.messages, text(heard["uuid"]));
    if (heard["isReplay"] === true && id !== undefined) return this.#delivered(text(heard["uuid"]), id);
    for (const block of list(record(heard["message"])["content"]).map(record)) {
      if (block["type"] !== "tool_result") continue;
      const call = nameOf(block["tool_use_id"]);
      const tool = entry(this.#state.calls, call) ?? "unknown";
      const output = contentText(block["content"]);
      const ok = block["is_error"] !== true;
      // The hook is asked about every call. What fails otherwise than by the exit code of a command may never have begun.
      const isUnasked = entry(this.#state.allowed, call) === undefined && (ok || output.startsWith("Exit code "));
      this.#set({ calls: without(this.#state.calls, call), allowed: without(this.#state.allowed, call) });
      events.push({ event: { type: "tool_result", call, tool, ok, output } });
      if (isUnasked && heard["isReplay"] !== true) events.push({ breach: unaskedReason("Claude Code", tool) });
    }
    return events;
  }

  /** Told twice, in two ways; once is enough. */
  #delivered(uuid: string, id: string): readonly Heard[] {
    this.#set({ messages: without(this.#state.messages, uuid), read: without(this.#state.read, uuid) });
    return [{ delivered: id }];
  }

  #lifecycle(heard: Loose): readonly Heard[] {
    const uuid = text(heard["command_uuid"]);
    const id = entry(this.#state.messages, uuid);
    if (id === undefined) return [];
    if (heard["state"] === "started" || heard["state"] === "completed") return this.#delivered(uuid, id);
    if (heard["state"] === "queued") this.#set({ read: { ...this.#state.read, [uuid]: true } });
    if (heard["state"] !== "cancelled") return [];
    this.#set({ messages: without(this.#state.messages, uuid) });
    return [{ refused: id, reason: "Claude Code threw it away unread, because its turn was interrupted." }];
  }

  #controlResponse(request: string): readonly Heard[] {
    if (request === INITIALIZE) this.#set({ initialised: true });
    if (request !== PROBE) return [];
    const { messages, read } = this.#state;
    const lost = Object.entries(messages).filter(([uuid]) => read[uuid] !== true);
    for (const [uuid] of lost) this.#set({ messages: without(this.#state.messages, uuid) });
    return lost.map(([, id]) => ({ lost: id }));
  }

  #controlRequest(request: string, body: Loose): readonly Heard[] {
    if (request.length > MOST_REQUEST_CHARACTERS) return [{ event: { type: "raw", stream: "stdout", text: request } }];
    if (body["subtype"] === "hook_callback") return this.#hook(request, record(body["input"]));
    if (body["subtype"] === "can_use_tool") {
      // Of itself it asks about some calls beyond the hook. What the hook did not allow, nothing allows.
      const isAllowed = entry(this.#state.allowed, nameOf(body["tool_use_id"])) === true && lineOf(body).length <= MOST_ECHOED_CHARACTERS;
      const response = isAllowed
        ? { behavior: "allow", updatedInput: body["input"] ?? {} }
        : { behavior: "deny", message: "The policy was not asked about it." };
      return [{ write: lineOf({ type: "control_response", response: { subtype: "success", request_id: request, response } }) }];
    }
    const unknown = { subtype: "error", request_id: request, error: "not supported" };
    return [{ write: lineOf({ type: "control_response", response: unknown }) }];
  }

  #hook(request: string, input: Loose): readonly Heard[] {
    const tool = nameOf(input["tool_name"]);
    const searches = tool === "Glob" || tool === "Grep";
    const argument = argumentOf(tool, record(input["tool_input"])) ?? (searches ? this.#start.project : null);
    const asked = { tool, argument, call: nameOf(input["tool_use_id"]) || null };
    const refusal = refusalOfMore(this.#state.requests, asked);
    if (refusal !== undefined) return [{ write: this.answer(request, false, refusal) }];
    this.#set({ requests: withEntry(this.#state.requests, request, asked) });
    if (HARMLESS.has(tool) || tool.startsWith("mcp__vivarium__")) return [{ write: this.answer(request, true, "It touches nothing.") }];
    return [this.#asked(request)];
  }

  #result(heard: Loose): readonly Heard[] {
    const said = text(heard["result"]);
    const failed = heard["is_error"] === true || heard["subtype"] !== "success";
    const used = usageOf(record(heard["usage"]), this.#state.context)?.event;
    const events: Heard[] = [
      ...this.#resumed(),
      ...(used === undefined ? [] : [{ event: used }]),
      { event: { type: "turn", state: "ended" } },
    ];
    if (!failed) return [...events, { event: { type: "finished", text: said } }, { turnEnded: true }];
    if (text(heard["terminal_reason"]).startsWith("aborted")) return [...events, { turnEnded: true }];
    const reason = said === "" ? `Claude Code gave up: ${text(heard["terminal_reason"]) || text(heard["subtype"])}.` : said;
    return [...events, { event: { type: "error", text: reason, passing: false } }, { over: "failed", reason }];
  }
}

function usageOf(usage: Loose, contextTokens: number | null): { event: RunEventBody; inputAll: number } | undefined {
  const input = number(usage["input_tokens"]);
  if (input === undefined) return undefined;
  const [read, written] = [number(usage["cache_read_input_tokens"]) ?? 0, number(usage["cache_creation_input_tokens"]) ?? 0];
  const outputTokens = number(usage["output_tokens"]) ?? 0;
  return {
    inputAll: input + read + written,
    event: { type: "usage", inputTokens: input, outputTokens, cacheReadTokens: read, cacheWriteTokens: written, contextTokens },
  };
}

function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .map(record)
    .map((block) => (block["type"] === "text" ? text(block["text"]) : `[${text(block["type"])}]`))
    .join("\n");
}

type Json = Extract<RunEventBody, { type: "tool_call" }>["input"];
const json = (value: unknown): Json => (value ?? null) as Json;
