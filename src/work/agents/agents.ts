/** Which agents there are: where the program of each comes from, whether it has a login, and whether it starts in a sandbox. */
import { basename } from "node:path";
import type { Agent, AgentProbe } from "../../base/schema/agent-contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { KNOWN_AGENTS } from "../../base/schema/known-agents.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Models } from "../../rules/models/models.ts";
import { findProject } from "../../machine/capture/project.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Adapter } from "./adapter.ts";
import type { Adapters } from "./adapters.ts";
import type { AgentInstalls } from "./install.ts";
import { findProgram, packageVersion, type FoundProgram } from "./programs.ts";

export interface AgentsParts {
  readonly adapters: Adapters;
  readonly installs: AgentInstalls;
  readonly models: Models;
  readonly sandboxes: Sandboxes;
  /** Home folder of the server's user. */
  readonly home: string;
  /** State folder. */
  readonly state: string;
}

/** Who asks: programs on that PATH and in the project of that folder count. */
export interface AgentCaller {
  readonly path?: string | undefined;
  readonly project?: string | undefined;
}

/** Where programs are looked for if the caller does not say. */
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const VERSION = /\d+\.\d+(?:\.\d+)?[\w.+-]*/;
const SHOWN_CHARACTERS = 200;

export class Agents {
  readonly #all: AgentsParts;

  constructor(all: AgentsParts) {
    this.#all = all;
  }

  list(caller: AgentCaller): Agent[] {
    return this.#all.adapters.names.map((name) => this.#shown(this.adapter(name), caller));
  }

  /** An agent that can work, with its program; refuses what could not even begin. */
  ready(name: string, caller: AgentCaller): { adapter: Adapter; program: string } {
    const adapter = this.adapter(name);
    const { path } = this.#found(adapter, caller);
    if (adapter.providers.length > 0 && this.#providerOf(adapter) === undefined)
      throw new VivError("agent_login", `${adapter.title} has no login here.`, { remedy: `Run \`viv agents login ${name}\`.` });
    return { adapter, program: path };
  }

  /** Refuses a model that the agent takes none of, or that its model API does not have. */
  async requireModel(name: string, model: string): Promise<void> {
    const adapter = this.adapter(name);
    const { models } = this.#all;
    const named = adapter.namedModel(model, Object.keys(models.inside()));
    if (named === undefined)
      throw new VivError("model_refused", `No model can be named to ${adapter.title}.`, {
        remedy: `Leave the model out, or let a variable of agents.${name} in the user's config hold \`{model}\`.`,
      });
    if (named === "own") return;
    const missing = await models.missing(named.provider, named.model);
    if (missing === undefined) return;
    const { words, others } = missing;
    throw new VivError("model_refused", `${named.provider} has no model ${named.model}${words === undefined ? "." : `: ${words}`}`, {
      remedy: `Name one that it has, such as ${others.join(", ")}, or leave the model out.`,
    });
  }

  adapter(name: string): Adapter {
    const adapter = this.#all.adapters.of(name);
    if (adapter !== undefined) return adapter;
    throw new VivError("agent_missing", `There is no agent ${name}.`, { remedy: `Use one of ${this.#all.adapters.names.join(", ")}.` });
  }

  async install(name: string, signal?: AbortSignal): Promise<Agent> {
    const adapter = this.adapter(name);
    await this.#all.installs.install(name, signal);
    return this.#shown(adapter, {});
  }

  /** Starts its program as a run would, but for a task: in a clone that is thrown away. */
  async probe(name: string, caller: AgentCaller, signal?: AbortSignal): Promise<AgentProbe> {
    const { path } = this.#found(this.adapter(name), caller);
    const project = this.#projectOf(caller);
    const place = project === undefined ? { empty: true } : { project };
    const { id, result } = await this.#all.sandboxes.create(
      {
        ...place,
        network: "off",
        env: { PATH: caller.path ?? SYSTEM_PATH },
        run: { command: [path, "--version"], timeoutMs: LIMITS.agentProbeTimeoutMs },
      },
      signal,
    );
    await this.#all.sandboxes.remove(id);
    const [said = ""] = `${result?.stdout ?? ""}\n${result?.stderr ?? ""}`.trim().split("\n");
    const version = VERSION.exec(said)?.[0] ?? null;
    const end = result?.end;
    const works = end?.exitCode === 0 && version !== null;
    const why = said === "" ? (end?.message ?? `It ended with exit code ${end?.exitCode ?? "unknown"} and printed nothing.`) : said;
    return { works, version: works ? version : null, detail: why.slice(0, SHOWN_CHARACTERS), wallMs: end?.wallMs ?? null };
  }

  #shown(adapter: Adapter, caller: AgentCaller): Agent {
    const { name, title, providers } = adapter;
    const found = this.#find(adapter, caller);
    const provider = this.#providerOf(adapter) ?? null;
    return {
      name,
      title,
      program: found?.path ?? null,
      from: found?.from ?? null,
      version: found === undefined ? null : this.#versionOf(name, found),
      login: providers.length === 0 ? "unneeded" : provider === null ? "missing" : "kept",
      provider,
      installs: KNOWN_AGENTS[name]?.version ?? null,
    };
  }

  #versionOf(name: string, { path, from }: FoundProgram): string | null {
    return from === "installed" ? (KNOWN_AGENTS[name]?.version ?? null) : (packageVersion(path) ?? null);
  }

  #found(adapter: Adapter, caller: AgentCaller): FoundProgram {
    const found = this.#find(adapter, caller);
    if (found !== undefined) return found;
    const canInstall = Object.hasOwn(KNOWN_AGENTS, adapter.name);
    throw new VivError("agent_missing", `${adapter.title} is not on this machine.`, {
      remedy: canInstall
        ? `Run \`viv agents install ${adapter.name}\`.`
        : `Install ${adapter.program}, or name it with its whole path in the config.`,
    });
  }

  /** An agent can be looked for outside of a project, too. */
  #projectOf({ project }: AgentCaller): string | undefined {
    try {
      return project === undefined ? undefined : findProject(project, this.#all.state);
    } catch (error) {
      if (error instanceof VivError && error.code === "project_not_found") return undefined;
      throw error;
    }
  }

  #find({ name, program }: Adapter, caller: AgentCaller): FoundProgram | undefined {
    const installed = this.#all.installs.find(name)?.program;
    return findProgram(program, {
      // An agent of the user's config may have this name, and another program.
      installed: installed !== undefined && basename(installed) === program ? installed : undefined,
      path: caller.path ?? SYSTEM_PATH,
      home: this.#all.home,
      project: this.#projectOf(caller),
    });
  }

  /** The first that a login is kept for. */
  #providerOf({ providers }: Adapter): string | undefined {
    const known = this.#all.models.inside();
    return providers.find((name) => name in known);
  }
}
