/**
 * The port of agents: how one is started without a terminal, which configuration it gets, how its output becomes events, how a message
 * gets in, how it is interrupted, and how a conversation goes on.
 *
 * An adapter is data and pure functions. It opens no file and no connection: the engine runs the program as a background command of
 * the sandbox, hands its output line by line to a `Session`, and does what the session asks for. What a session knows is in its
 * `state`, which the engine writes down together with the events and the place in the output: a session that is made anew from that
 * state by the next server goes on where the last one was.
 */
import type { PolicyAction } from "../../base/schema/policy.ts";
import type { RunEventBody } from "../../base/schema/run.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type SessionState = { readonly [key: string]: Json };

/** What an agent can't do is a row of docs/AGENTS.md. */
export interface AgentAbilities {
  /** When a message that is put into a running agent reaches it. */
  readonly messages: "tool" | "turn" | "never";
  /** Whether its turn can be ended without ending it. */
  readonly interrupt: boolean;
  /** Whether a conversation of before can go on in a new process. */
  readonly resume: boolean;
  /** Whether it asks before it acts, so that the policy and a person answer. */
  readonly asks: boolean;
  /** How it gets the tools of docs/AGENTS.md. */
  readonly tools: "mcp" | "plugin" | "none";
}

/** What a run of it begins with. */
export interface AgentStart {
  readonly run: string;
  /** The first message. One without an open input takes it on its command line, and says in `begin` that it is delivered. */
  readonly task: { readonly id: string; readonly text: string };
  readonly sandbox: string;
  /** Absolute path inside, the folder it works in. */
  readonly project: string;
  /** The program inside: a path, or a name on the PATH. */
  readonly program: string;
  /** null for the agent's own choice. */
  readonly model: string | null;
  /** Folder inside, outside the project, that the files of `Launch` go to; its own for every run. */
  readonly folder: string;
  /** Whether the system, with the home of its user, can't be written to. */
  readonly readOnly?: boolean;
  /** Where the model gateway answers, by provider, such as {"anthropic": {url, key}}; the key is a placeholder. */
  readonly models: Readonly<Record<string, { readonly url: string; readonly key: string }>>;
  /** Address of the gateway inside, for tools: http://127.0.0.1:4097. */
  readonly gateway: string;
  /** What the policy says, for AGENTS.md and permission settings. */
  readonly policy: AgentPolicy;
  /** The agent's id of a conversation that is to go on. */
  readonly conversation: string | null;
  /** Text put before the task: what a restarted agent has to know. */
  readonly context: string | null;
  /** Whether the project has one of the adapter's `projectSettings`; as if it had where that is not known. */
  readonly hasProjectSettings?: boolean;
}

export interface AgentPolicy {
  readonly text: string;
  /** Tools that the role lacks. */
  readonly lackedTools: readonly string[];
  /** As OpenCode's `permission`. */
  readonly rules: Readonly<Record<string, unknown>>;
}

export interface Launch {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Below the folder of `AgentStart`. */
  readonly files: readonly { readonly path: string; readonly content: string; readonly mode?: number }[];
  /**
   * What of the folder belongs to its conversation. All else an agent that follows another one finds as it is given here; "all" for a
   * program whose files are not known.
   */
  readonly keeps: readonly string[] | "all";
  /** Whether its input stays open for messages. */
  readonly input: boolean;
  /** Where it reads settings of the whole machine from, by path: what an agent before left there is removed. */
  readonly machineSettings?: readonly string[];
}

/** What came of a piece of output. */
export type Heard =
  | { readonly event: RunEventBody }
  /** For its input. Written again after a crash, if it is not known to have been written: it must bear that. */
  | { readonly write: string }
  /** A message is with the agent, or will never be. */
  | { readonly delivered: string }
  | { readonly refused: string; readonly reason: string }
  /** A message was written and never read: it may be written again. Only the answer to a probe tells that. */
  | { readonly lost: string }
  /** May it do this? The answer goes to `Session.answer` with the same request. */
  | { readonly request: string; readonly action: PolicyAction; readonly call: string | null }
  /** It did this without asking, as some agents do where they take an action for harmless: the policy judges it afterwards. */
  | { readonly unasked: PolicyAction; readonly tool: string }
  /** It did what it always has to ask about, and did not ask, for this reason: it is ended at once. */
  | { readonly breach: string }
  | { readonly conversation: string }
  /** Its turn has ended: messages that wait for that go now; with none it is over. */
  | { readonly turnEnded: true }
  /** It is over, for this reason. */
  | { readonly over: "done" | "failed" | "cancelled"; readonly reason: string | null };

export interface Session {
  /** Plain JSON, small. */
  readonly state: SessionState;
  /** What is written to its input before anything was heard. */
  begin(): readonly Heard[];
  /** A line of its output, without the line end. */
  line(text: string): readonly Heard[];
  /** A line of its errors. */
  errorLine(text: string): readonly Heard[];
  /** A message for it, also the task; undefined if it can't take one now: it is asked again after the next line. */
  message(id: string, text: string): string | undefined;
  /**
   * For a server that does not know whether a message was written before its predecessor died: a harmless question, whose answer comes
   * after everything that was written before it was read. Undefined where the agent answers none.
   */
  probe(): string | undefined;
  /** Ends its turn; undefined where a signal has to do it. */
  interrupt(): string | undefined;
  /** Requests that it waits for an answer to, for a server that did not hear them. */
  pending(): readonly Heard[];
  /** The verdict on a request. */
  answer(request: string, allowed: boolean, reason: string): string;
  /** Its process ended by itself. */
  end(exitCode: number | null): readonly Heard[];
}

/** A model of a provider, or a name of the agent's own that only its program knows what it stands for. */
export type NamedModel = { readonly provider: string; readonly model: string } | "own";

export interface Adapter {
  readonly name: string;
  /** As people call it. */
  readonly title: string;
  /** What its program is called. */
  readonly program: string;
  readonly abilities: AgentAbilities;
  /** Names of the providers of the model gateway that it may use; the first that is configured is taken. */
  readonly providers: readonly string[];
  /** Names in the project that it would read settings from, where it is started otherwise because of them. */
  readonly projectSettings?: readonly string[];
  /** What it makes of a model's name where these providers have a login; undefined if no model can be named to it. */
  namedModel(name: string, providers: readonly string[]): NamedModel | undefined;
  launch(start: AgentStart): Launch;
  session(start: AgentStart, state?: SessionState): Session;
}
