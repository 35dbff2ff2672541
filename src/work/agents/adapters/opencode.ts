/**
 * OpenCode, over the Agent Client Protocol, with Vivarium's plugin (integrations/opencode). The protocol carries messages, also during
 * a turn, which OpenCode reads before the next request to its model. The plugin asks the policy before each tool call, offers the
 * tools, and tells what the protocol does not: that it is there, what the model has read, what is waited for.
 */
import { readIntegration } from "../../../base/config/machine.ts";
import type { ToolKind } from "../../../base/schema/run.ts";
import type { Adapter, AgentStart, Heard, Launch, Session, SessionState } from "../adapter.ts";
import { number, text, type Loose } from "../loose-json.ts";
import { unaskedReason } from "../unasked.ts";
import { ACP_ABILITIES, acpSession } from "./acp.ts";
import { RpcLines, rpcMessage } from "./json-rpc.ts";
import { entry, nameOf, toolCall, waitsFor, without, type Entries } from "./wire.ts";

const TITLE = "OpenCode";
type Json = SessionState[string];
const PLUGIN = "_vivarium/";
const STEER = "steer ";
const rpc = new RpcLines({ jsonrpc: "2.0" });

export const opencode: Adapter = {
  name: "opencode",
  title: TITLE,
  program: "opencode",
  abilities: { ...ACP_ABILITIES, messages: "tool", tools: "plugin" },
  providers: ["anthropic", "openai", "gemini"],
  namedModel: (name, providers) => {
    const { name: provider, chosen } = modelOf(name, providers);
    return { provider, model: chosen ?? name };
  },
  launch,
  session: (start, state) => new OpenCodeSession(start, state as OpenCodeState | undefined),
};

/** What OpenCode calls a provider, the part of it that speaks to one, and what its address ends with. */
const PROVIDERS: Readonly<Record<string, { readonly id: string; readonly npm: string; readonly end: string }>> = {
  anthropic: { id: "anthropic", npm: "@ai-sdk/anthropic", end: "/v1" },
  openai: { id: "openai", npm: "@ai-sdk/openai", end: "" },
  gemini: { id: "google", npm: "@ai-sdk/google", end: "/v1beta" },
};

const KINDS: Readonly<Record<ToolKind, readonly string[]>> = {
  command: ["bash"],
  edit: ["edit", "write", "patch", "apply_patch", "multiedit"],
  read: ["read"],
  search: ["glob", "grep", "list"],
  fetch: ["webfetch", "websearch", "codesearch"],
  agent: ["task"],
  other: [],
};

function kindOf(tool: string): ToolKind {
  return (Object.keys(KINDS) as ToolKind[]).find((kind) => KINDS[kind].includes(tool)) ?? "other";
}

function launch(start: AgentStart): Launch {
  const { program, folder, gateway, policy, model, readOnly = false } = start;
  const lacked = Object.fromEntries(policy.lackedTools.map((tool) => [tool, "deny"]));
  return {
    command: [program, "acp"],
    env: {
      OPENCODE_CONFIG: `${folder}/opencode.json`,
      // Settings of the project could widen what it may do.
      OPENCODE_DISABLE_PROJECT_CONFIG: "1",
      XDG_CONFIG_HOME: `${folder}/config`,
      OPENCODE_DB: `${folder}/opencode.db`,
      // It ends at once where it can't make its folders.
      ...(readOnly ? { XDG_DATA_HOME: `${folder}/data`, XDG_STATE_HOME: `${folder}/state`, XDG_CACHE_HOME: `${folder}/cache` } : {}),
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      OPENCODE_DISABLE_CLAUDE_CODE: "1",
      // The list of all models costs a second, and is needed only to choose one.
      ...(model === null ? {} : { OPENCODE_MODELS_PATH: `${folder}/models.json` }),
      VIVARIUM_GATEWAY: gateway,
      // No person sits before it: the gateway's own tool asks one.
      VIVARIUM_PERMISSION: JSON.stringify({ "*": "allow", question: "deny", ...lacked }),
    },
    files: [
      { path: "opencode.json", content: json(configOf(start)) },
      { path: "models.json", content: json({}) },
      { path: "AGENTS.md", content: `${policy.text}\n` },
      { path: "vivarium.js", content: readIntegration("opencode/vivarium.js") },
      // Where it finds these, it does not fetch the types of plugins, for which it waits more than a minute without a network.
      { path: "config/opencode/package-lock.json", content: json({ packages: { "": { dependencies: { "@opencode-ai/plugin": "*" } } } }) },
      { path: "config/opencode/node_modules/.keep", content: "" },
    ],
    keeps: ["opencode.db", "opencode.db-wal", "opencode.db-shm"],
    machineSettings: ["/etc/opencode", "/root/.opencode"],
    input: true,
  };
}

const json = (value: object): string => `${JSON.stringify(value)}\n`;

/** Everything is denied here; the plugin takes that back, so that nothing can be done without it. */
function configOf({ folder, project, models, model }: AgentStart): object {
  const { name, chosen } = modelOf(model, Object.keys(models));
  const gateway = models[name];
  const { id, npm, end } = PROVIDERS[name] ?? { id: name, npm: "@ai-sdk/openai-compatible", end: "" };
  const known = chosen === null ? {} : { models: { [chosen]: { name: chosen, tool_call: true } } };
  const options = gateway === undefined ? {} : { baseURL: `${gateway.url}${end}`, apiKey: gateway.key };
  return {
    permission: { "*": "deny" },
    plugin: [`file://${folder}/vivarium.js`],
    // The project's own notes are left out together with its settings, and are named here instead.
    instructions: [`${folder}/AGENTS.md`, `${project}/AGENTS.md`, `${project}/CLAUDE.md`],
    provider: { [id]: { npm, options, ...known } },
    enabled_providers: [id],
    ...(chosen === null ? {} : { model: `${id}/${chosen}`, small_model: `${id}/${chosen}` }),
    // A title costs a request to the model, and is shown nowhere.
    agent: { title: { disable: true } },
    autoupdate: false,
    share: "disabled",
    snapshot: false,
  };
}

/** A model may be named with its provider, as in `openai/gpt-5`; else it is one of the first provider that is there. */
function modelOf(model: string | null, providers: readonly string[]): { name: string; chosen: string | null } {
  const named = providers.find((name) => model?.startsWith(`${name}/`) === true);
  if (named !== undefined && model !== null) return { name: named, chosen: model.slice(named.length + 1) };
  return { name: Object.keys(PROVIDERS).find((name) => providers.includes(name)) ?? providers[0] ?? "anthropic", chosen: model };
}

/** Heard of by the protocol or by the plugin; told as an event once it was by both, so that it comes in its place. */
type OpenCall = { readonly begun: boolean; readonly tool: string; readonly input: Json | null; readonly told: boolean };
const UNHEARD: OpenCall = { begun: false, tool: "", input: null, told: false };
/** Calls at once, and characters of an input that waits for its place. */
const MOST_CALLS = 32;
const INPUT_CHARACTERS = 4_096;

type OpenCodeState = {
  /** Of the protocol. */
  readonly acp: SessionState;
  readonly hasPlugin: boolean;
  /** How many messages the model of this process has read, and those that come next; empty for those that the protocol tells of. */
  readonly read: number;
  readonly unread: readonly string[];
  /** Messages that were given during a turn, and are not answered. */
  readonly steers: readonly string[];
  /** The turn has ended for the message that began it, and goes on for these. */
  readonly isHeld: boolean;
  /** Calls without a result. The protocol tells when one begins, and the plugin which tool it is of, with what. */
  readonly calls: Entries<OpenCall>;
  /** What it waits for. */
  readonly waits: "person" | "rate_limit" | "retry" | null;
};

class OpenCodeSession implements Session {
  readonly #acp: Session;
  #state: Omit<OpenCodeState, "acp">;

  constructor(start: AgentStart, state: OpenCodeState | undefined) {
    const { acp, ...own } = state ?? {
      acp: undefined,
      hasPlugin: false,
      read: 0,
      unread: [],
      steers: [],
      isHeld: false,
      calls: {},
      waits: null,
    };
    this.#acp = acpSession({ name: "opencode", title: TITLE, hasOwnTools: true }, start, acp);
    this.#state = own;
  }

  get state(): OpenCodeState {
    return { ...this.#state, acp: this.#acp.state };
  }

  #set(patch: Partial<Omit<OpenCodeState, "acp">>): void {
    this.#state = { ...this.#state, ...patch };
  }

  begin(): readonly Heard[] {
    return this.#acp.begin();
  }

  message(id: string, words: string): string | undefined {
    if (!this.#state.hasPlugin) return undefined;
    const isBusy = this.#isBusy;
    const line = isBusy ? this.#steer(id, words) : this.#acp.message(id, words);
    if (line !== undefined) this.#set({ unread: [...this.#state.unread, isBusy ? id : ""] });
    return line;
  }

  get #isBusy(): boolean {
    return this.#acp.state["prompt"] !== null || this.#state.isHeld;
  }

  #steer(id: string, words: string): string {
    this.#set({ steers: [...this.#state.steers, id] });
    const params = { sessionId: this.#acp.state["session"], prompt: [{ type: "text", text: words }] };
    return rpc.request(`${STEER}${id}`, "session/prompt", params);
  }

  probe(): string | undefined {
    return this.#acp.probe();
  }

  interrupt(): string | undefined {
    return this.#acp.interrupt();
  }

  pending(): readonly Heard[] {
    return this.#acp.pending();
  }

  answer(request: string, allowed: boolean, reason: string): string {
    return this.#acp.answer(request, allowed, reason);
  }

  line(line: string): readonly Heard[] {
    const heard = rpcMessage(line);
    if (heard?.kind === "notification" && heard.method.startsWith(PLUGIN))
      return this.#told(heard.method.slice(PLUGIN.length), heard.params);
    if (heard?.kind === "answer" && heard.id.startsWith(STEER)) return this.#steered(heard.id.slice(STEER.length), heard.error);
    const wasOpen = this.#acp.state["session"] !== null;
    const events = this.#acp.line(line).flatMap((each) => this.#named(each));
    // The plugin is loaded before a conversation is open.
    if (!wasOpen && this.#acp.state["session"] !== null && !this.#state.hasPlugin)
      return [...events, { over: "failed", reason: "OpenCode did not load Vivarium's plugin, which asks before the agent acts." }];
    return this.#state.steers.length === 0 ? events : this.#held(events);
  }

  errorLine(line: string): readonly Heard[] {
    return this.#acp.errorLine(line);
  }

  end(exitCode: number | null): readonly Heard[] {
    return this.#acp.end(exitCode);
  }

  #named(heard: Heard): readonly Heard[] {
    if (!("event" in heard)) return [heard];
    const { event } = heard;
    if (event.type === "tool_call") return this.#called(event.call, { begun: true });
    if (event.type !== "tool_result") return [heard];
    const { tool, told } = entry(this.#state.calls, event.call) ?? UNHEARD;
    this.#set({ calls: without(this.#state.calls, event.call) });
    if (!told && event.ok) return [{ event }, { breach: unaskedReason(TITLE, event.tool) }];
    // What the plugin was not asked about never ran.
    return told ? [{ event: { ...event, tool } }] : [{ event: { type: "error", text: event.output, passing: true } }];
  }

  #called(call: string, what: Partial<OpenCall>): readonly Heard[] {
    const now: OpenCall = { ...(entry(this.#state.calls, call) ?? UNHEARD), ...what };
    const isWhole = now.begun && now.tool !== "";
    const rest = Object.entries(without(this.#state.calls, call)).slice(1 - MOST_CALLS);
    this.#set({ calls: Object.fromEntries([...rest, [call, isWhole ? { ...now, input: null, told: true } : now]]) });
    return isWhole && !now.told ? [toolCall(call, now.tool, kindOf(now.tool), now.input)] : [];
  }

  /** A turn that goes on for a message that was given during it has not ended. */
  #held(events: readonly Heard[]): readonly Heard[] {
    if (!events.some((each) => "turnEnded" in each)) return events;
    this.#set({ isHeld: true });
    return events.filter((each) => !("turnEnded" in each) && !("event" in each && each.event.type === "turn"));
  }

  #steered(id: string, error: string | undefined): readonly Heard[] {
    const steers = this.#state.steers.filter((each) => each !== id);
    const isEnd = this.#state.isHeld && steers.length === 0;
    this.#set({ steers, isHeld: this.#state.isHeld && !isEnd });
    const fate = error === undefined ? [] : this.#refused(id, error);
    return isEnd ? [...fate, { event: { type: "turn", state: "ended" } }, { turnEnded: true }] : fate;
  }

  #refused(id: string, error: string): readonly Heard[] {
    const { unread } = this.#state;
    if (!unread.includes(id)) return [];
    this.#set({ unread: unread.map((each) => (each === id ? "" : each)) });
    return [{ refused: id, reason: `${TITLE} did not take it: ${error}` }];
  }

  #told(what: string, params: Loose): readonly Heard[] {
    switch (what) {
      case "ready":
        this.#set({ hasPlugin: true });
        return [];
      case "call":
        return this.#called(nameOf(params["call"]), { tool: nameOf(params["tool"]) || "unknown", input: shortened(params["input"]) });
      case "read":
        return params["sessionId"] === this.#acp.state["session"] ? this.#hasRead(number(params["messages"]) ?? 0) : [];
      case "waiting": {
        const words = text(params["text"]);
        const waits = params["for"] === "person" ? "person" : waitsFor(words);
        this.#set({ waits });
        return [{ event: { type: "waiting", for: waits, until: text(params["until"]) || null, text: words } }];
      }
      case "resumed": {
        const { waits } = this.#state;
        this.#set({ waits: null });
        return waits === null ? [] : [{ event: { type: "resumed", for: waits } }];
      }
      default:
        return [];
    }
  }

  #hasRead(count: number): readonly Heard[] {
    const { read, unread } = this.#state;
    const now = Math.max(0, count - read);
    this.#set({ read: read + Math.min(now, unread.length), unread: unread.slice(now) });
    // The protocol tells of a turn only when something is done in it.
    const update = { sessionId: this.#acp.state["session"], update: { sessionUpdate: "plan" } };
    const steered = unread.slice(0, now).filter((id) => id !== "");
    return [...this.#acp.line(rpc.notification("session/update", update)), ...steered.map((delivered) => ({ delivered }))];
  }
}

function shortened(input: unknown): Json {
  const words = JSON.stringify(input ?? null);
  return words.length <= INPUT_CHARACTERS ? (JSON.parse(words) as Json) : { shortened: words.slice(0, INPUT_CHARACTERS) };
}
