/** Agents of the user's own config: a protocol that is known, spoken by another program. */
import type { AgentEntry } from "../../../base/schema/agent.ts";
import type { Adapter, AgentStart, Launch, NamedModel } from "../adapter.ts";
import { ACP_ABILITIES, acpSession } from "./acp.ts";
import { COMMAND_ABILITIES, commandLaunch, commandSession } from "./command.ts";

export function configured(name: string, entry: AgentEntry, known: readonly Adapter[]): Adapter {
  const adapter = spoken(name, entry, known);
  return {
    ...adapter,
    name,
    title: name,
    program: typeof entry.command === "string" ? "sh" : (entry.command[0] ?? ""),
    providers: entry.providers ?? adapter.providers,
    namedModel: (model, providers) => namedModel(entry, adapter, model, providers),
    launch(start) {
      const launch = adapter.launch({ ...start, models: modelsFor(start, entry, adapter) });
      return {
        ...launch,
        command: launch.command.map((word) => placed(word, start)),
        env: { ...launch.env, ...variablesOf(entry, start) },
      };
    },
  };
}

const MODEL = "{model}";

function placed(text: string, { folder }: AgentStart): string {
  return text.replaceAll("{folder}", folder);
}

function variablesOf({ env }: AgentEntry, start: AgentStart): Record<string, string> {
  const set = Object.entries(env).filter(([, value]) => start.model !== null || !value.includes(MODEL));
  return Object.fromEntries(set.map(([name, value]) => [name, placed(value.replaceAll(MODEL, start.model ?? ""), start)]));
}

/** The first of its own model APIs that is there, by a name that the protocol's agent knows. */
function modelsFor({ models }: AgentStart, { providers }: AgentEntry, { providers: known }: Spoken): AgentStart["models"] {
  if (providers === undefined) return models;
  const name = providers.find((each) => models[each] !== undefined);
  const model = name === undefined ? undefined : models[name];
  if (name === undefined || model === undefined) return {};
  return { [known.includes(name) ? name : (known[0] ?? name)]: model };
}

type Spoken = Pick<Adapter, "abilities" | "providers" | "namedModel" | "launch" | "session">;

/** By the provider that stands behind the name which the protocol's agent knows. */
function namedModel(entry: AgentEntry, spokenBy: Spoken, model: string, providers: readonly string[]): NamedModel | undefined {
  const chosen = entry.providers?.find((name) => providers.includes(name));
  const named = spokenBy.namedModel(model, entry.providers === undefined ? providers : spokenBy.providers.slice(0, 1));
  return typeof named === "object" && chosen !== undefined ? { ...named, provider: chosen } : named;
}

/** Only by a variable that holds it. */
function takesModel({ env }: AgentEntry): boolean {
  return Object.values(env).some((value) => value.includes(MODEL));
}

function spoken(name: string, entry: AgentEntry, known: readonly Adapter[]): Spoken {
  const { protocol, command } = entry;
  const own = (): NamedModel | undefined => (takesModel(entry) ? "own" : undefined);
  if (protocol === "command")
    return {
      abilities: COMMAND_ABILITIES,
      providers: [],
      namedModel: own,
      launch: (start) => commandLaunch(withProgram(command, start), start),
      session: (start) => commandSession(name, name, start),
    };
  const words = typeof command === "string" ? [command] : command;
  if (protocol === "acp")
    return {
      abilities: ACP_ABILITIES,
      providers: [],
      namedModel: own,
      launch: (start) => ({ command: [start.program, ...words.slice(1)], env: {}, files: [], keeps: "all", input: true }),
      session: (start, state) => acpSession({ name, title: name, tellsPolicy: true }, start, state),
    };
  const adapter = known.find((each) => each.name === protocol);
  if (adapter === undefined) throw new Error(`no adapter speaks ${protocol}`);
  return { ...adapter, launch: (start) => withArguments(adapter.launch(start), words.slice(1)) };
}

/** The program as it was found. */
function withProgram(command: string | readonly string[], { program }: AgentStart): string | readonly string[] {
  return typeof command === "string" ? command : [program, ...command.slice(1)];
}

/** Arguments of the config stand first: they belong to a program that starts the agent, such as `npx` and its package. */
function withArguments(launch: Launch, words: readonly string[]): Launch {
  const [program = "", ...rest] = launch.command;
  return { ...launch, command: [program, ...words, ...rest] };
}
