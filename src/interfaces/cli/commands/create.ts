import { resolve } from "node:path";
import { NETWORK_MODES } from "../../../base/schema/choices.ts";
import type { Client } from "../../client/client.ts";
import { definedOnly } from "../defined-only.ts";
import { command, type OptionDeclarations, type OptionValues } from "../command.ts";
import type { CreateInput } from "../../../base/schema/contracts.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { ClosedRegistry, NetworkMode } from "../../../base/schema/network.ts";
import type { Sandbox } from "../../../base/schema/sandbox.ts";
import type { Screen } from "../screen.ts";
import { AUTONOMY_OPTIONS, autonomy } from "../policy-options.ts";
import { clean, duration } from "../text.ts";
import { shellLine } from "../../../base/schema/shell-words.ts";
import { parsePairs, usageError } from "../values.ts";
import { repository, REPOSITORY_OPTIONS, startSentence } from "../starting-point.ts";

const SMALLEST_BYTES = 1024 ** 2;

export const CREATE_OPTIONS = {
  project: { type: "text", short: "p", value: "PATH", completes: "path", summary: "A folder in the project; the current one if left out" },
  ...REPOSITORY_OPTIONS,
  empty: { type: "flag", summary: "Start from an empty workspace on a read-only system, as user 1000" },
  "read-only": { type: "flag", summary: "Only the project and /tmp can be written to" },
  name: { type: "text", short: "n", value: "NAME", summary: "Name: lower-case letters, digits and hyphens; one is made up if left out" },
  cpus: { type: "number", value: "N", summary: "CPU cores, fractions allowed" },
  memory: { type: "size", value: "SIZE", summary: "Memory, such as 512m or 4g" },
  disk: { type: "size", value: "SIZE", summary: "Disk space of its own" },
  processes: { type: "integer", value: "N", summary: "Processes and threads" },
  idle: { type: "duration", value: "TIME", summary: "Stop it after this idle time, such as 30m; 0 for never" },
  user: { type: "text", short: "u", value: "USER", summary: "User inside that commands run as; you if left out" },
  network: {
    type: "text",
    completes: NETWORK_MODES,
    value: "MODE",
    summary: "What it reaches: off, allow-list or public; as configured if left out",
  },
  "no-network-variables": { type: "flag", summary: "Give commands no variables that name the proxy; names work without them" },
  ...AUTONOMY_OPTIONS,
  label: { type: "list", short: "l", value: "KEY=VALUE", summary: "Label it; may be given several times" },
  unwalled: { type: "flag", summary: "On a system without walls: work on a copy of the folder WITHOUT isolation" },
} as const satisfies OptionDeclarations;

/** What a sandbox is created with: the caller's folder, environment and user. */
export function createInput(
  options: OptionValues<typeof CREATE_OPTIONS>,
  caller: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> },
): CreateInput {
  for (const name of ["memory", "disk"] as const) {
    if ((options[name] ?? SMALLEST_BYTES) < SMALLEST_BYTES) throw usageError(`--${name} must be 1m at least.`);
  }
  refusePorts(options.project);
  const start = startOf(options, caller.cwd);
  const limits = {
    ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
    ...(options.memory === undefined ? {} : { memoryBytes: options.memory }),
    ...(options.disk === undefined ? {} : { diskBytes: options.disk }),
    ...(options.processes === undefined ? {} : { processes: options.processes }),
  };
  return {
    ...start,
    env: definedOnly(caller.env),
    user: options.user ?? String(process.getuid?.() ?? 0),
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(options.idle === undefined ? {} : { idleMs: options.idle }),
    ...(options.label.length === 0 ? {} : { labels: parsePairs("--label", options.label) }),
    // The server knows which modes there are.
    ...(options.network === undefined ? {} : { network: options.network as NetworkMode }),
    ...(options["no-network-variables"] ? { networkVariables: false } : {}),
    ...autonomy(options),
    ...(options["read-only"] ? { readOnly: true } : {}),
    ...(options.unwalled ? { unwalled: true } : {}),
  };
}

/** The project of the caller's folder, unless the options name another start. */
function startOf(options: OptionValues<typeof CREATE_OPTIONS>, cwd: string): Pick<CreateInput, "project" | "git" | "empty"> {
  const { project, empty } = options;
  const git = repository(options);
  const named = [project === undefined ? [] : "a project", git === undefined ? [] : "--git", empty ? "--empty" : []].flat();
  if (named.length > 1) throw usageError(`${named.join(" and ")} exclude each other.`, "A sandbox starts from one of them.");
  if (empty && options.user !== undefined) throw usageError("An empty workspace has the user 1000; --user does not go with --empty.");
  if (empty) return { empty };
  return git === undefined ? { project: resolve(cwd, project ?? ".") } : { git };
}

/** Elsewhere -p opens ports, and a project has no such name. */
function refusePorts(project: string | undefined): void {
  const [, outside = "", inside = ""] = /^(?:[\d.]+:)?(\d+):(\d+)(?:\/tcp)?$/.exec(project ?? "") ?? [];
  if (inside !== "")
    throw usageError(
      `-p names the project, and ${project ?? ""} is none.`,
      `Open a port when the sandbox is there: \`viv port SANDBOX ${inside} ${outside}\`.`,
    );
}

/** A person who uses a sandbox without walls sees that at once. */
export function warnIfUnwalled(screen: Screen, sandbox: Sandbox): void {
  if (!sandbox.walled)
    screen.warn(`UNWALLED: ${sandbox.name} is a copy of the folder without isolation; commands in it reach the real machine.`);
}

/** Warns about keys of the config that did not take effect. */
export function sayWhatIsMissing(screen: Screen, { untrusted, notes }: Sandbox): void {
  for (const note of notes) screen.say(clean(note));
  if (untrusted.length > 0)
    screen.say(`vivarium.json is not trusted; without effect until then: ${untrusted.join(", ")}. Read it, then run \`viv trust\`.`);
}

/** Tells the person now which registries an install inside would not reach. Asked after the creation, so that the creation takes no longer. */
async function closedRegistries(server: Client, project: string, { env, network }: CreateInput): Promise<readonly ClosedRegistry[]> {
  try {
    const patience = AbortSignal.timeout(2 * LIMITS.closedRegistriesMs);
    return (await server.call("closedRegistries", { project, home: env?.["HOME"], network }, patience)).registries;
  } catch {
    // The first request for one says what is to be done, too.
    return [];
  }
}

/** `elsewhere` is the project where it is not that of this folder. */
function offer({ host, port, file, why }: ClosedRegistry, elsewhere: string | undefined): string {
  const place = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const reason = why === "port" ? `port ${port} is not open` : "its address is private";
  const opens = shellLine(["viv", "network", "allow-private", ...(elsewhere === undefined ? [] : ["--project", elsewhere]), place]);
  return clean(
    `${file} names ${place} as a package registry, which sandboxes don't reach, because ${reason}: \`${opens}\` opens it for this project.`,
  );
}

export default command({
  name: "create",
  summary: "Clone this machine into a new sandbox",
  details:
    "The project is the nearest folder with a vivarium.json or .git above that folder. The clone starts from the project and the system as they are now; nothing done inside reaches them. If settings of the machine or the project name a package registry that sandboxes don't reach, the command names it, and says how to open it. With --git the repository is cloned inside the walls, by a clone that reaches its host alone; a secret that is kept for that host (`viv secret set`) is put into the requests outside. Such a sandbox and an empty one have their files at /workspace, and no project on this machine: `viv diff`, snapshots and forks work as ever, and a change leaves by a push from inside, `viv diff --patch` or `viv cp`.",
  examples: [
    ["viv create --name try", "clone the machine with the project of this folder"],
    ["viv create ~/src/app --memory 2g --cpus 1", "another project, with limits"],
    ["viv exec $(viv create) -- make test", "create prints the name alone when piped"],
    ["viv create --git https://github.com/me/app.git --ref v2", "a repository, cloned inside"],
    ["viv create --empty", "an empty /workspace, a read-only system, no user of this machine"],
    ["viv create --json", "id, name, state and more, for programs"],
  ],
  options: CREATE_OPTIONS,
  positionals: [{ name: "PATH", summary: "The same as --project", optional: true, completes: "path" }],
  async run({ options, positionals, json, screen, cwd, env, client }) {
    const [path = options.project] = positionals;
    const input = createInput({ ...options, project: path }, { cwd, env });
    const server = await client();
    const started = performance.now();
    const sandbox = await screen.during("Cloning the machine", server.call("createSandbox", input));
    warnIfUnwalled(screen, sandbox);
    sayWhatIsMissing(screen, sandbox);
    if (json) screen.json(sandbox);
    else if (!screen.terminal) screen.print(sandbox.name);
    else {
      screen.print(
        `${screen.paint("bold", sandbox.name)} is ${sandbox.state} after ${duration(performance.now() - started)}, ${startSentence(sandbox)}.`,
      );
      screen.print(screen.paint("dim", `Try: viv shell ${sandbox.name}`));
    }
    if (json || !sandbox.walled || input.project === undefined) return;
    for (const registry of await closedRegistries(server, input.project, input))
      screen.say(offer(registry, path === undefined ? undefined : sandbox.project));
  },
});
