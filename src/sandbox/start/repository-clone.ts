/**
 * A git repository as the start of a sandbox. git runs inside walls of its own: in a sandbox that is made for the clone, reaches
 * the repository's host alone, and can write to nothing but its workspace. What it leaves there is frozen into a base, like a
 * project of reality, and that sandbox goes before the new one is made. The server runs no git on it. A login stays outside: git
 * sends a placeholder, and the proxy puts the secret in its place.
 */
import { errorText } from "../../base/host/log.ts";
import type { CommandResult } from "../../base/schema/command.ts";
import type { CreateInput } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { canonicalHost, type HostRule } from "../../base/schema/network.ts";
import type { Repository, StartingPoint } from "../../base/schema/start.ts";
import { WORKSPACE } from "../../base/schema/workspace.ts";
import type { Base, SandboxRow } from "../../base/store/rows.ts";
import type { Backend } from "../../machine/backends.ts";
import { isBound } from "../../rules/secrets/secrets.ts";
import type { Commands } from "../commands/commands.ts";
import type { SandboxEnd } from "../ending/sandbox-end.ts";
import { refuseWider } from "../permissions/networks.ts";
import type { ProjectView } from "../projects/projects.ts";
import { emptyBase, openWorkspace, repositoryName } from "../projects/workspaces.ts";
import type { Parts } from "../shared/parts.ts";
import { explainClone, type Login } from "./clone-failures.ts";
import type { Creation } from "./creation.ts";
import type { Captured, Origin } from "./origin.ts";

type CloneParts = Pick<Parts, "store" | "state" | "uid" | "user" | "backends" | "locks" | "egress" | "log" | "reach">;

interface CloneRequest {
  readonly repository: Repository;
  readonly input: CreateInput;
  readonly signal: AbortSignal | undefined;
}

/** Settings for this one command: nothing of them stays in the repository. No hook, filter or submodule is run or fetched. */
const SETTINGS = [
  "credential.username=x-access-token",
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "submodule.recurse=false",
  "fetch.recurseSubmodules=false",
  // A server that sends nothing any more.
  "http.lowSpeedLimit=1",
  "http.lowSpeedTime=60",
];
/** Asked after the helpers of the machine's own settings. The word that git adds says what it wants. */
const HELPER = `credential.helper=!f() { test "$1" = get && printf 'password=%s\\n' "$VIV_CLONE_LOGIN"; }; f`;

const VARIABLES = {
  GIT_TERMINAL_PROMPT: "0",
  // Empty: no program that asks, whatever the settings say.
  GIT_ASKPASS: "",
  GIT_ALLOW_PROTOCOL: "http:https",
  GIT_LFS_SKIP_SMUDGE: "1",
  LC_ALL: "C",
  LANGUAGE: "C",
};

export class RepositoryClone {
  readonly #parts: CloneParts;
  readonly #creation: Creation;
  readonly #commands: Commands;
  readonly #sandboxEnd: SandboxEnd;

  constructor(parts: CloneParts, creation: Creation, commands: Commands, sandboxEnd: SandboxEnd) {
    this.#parts = parts;
    this.#creation = creation;
    this.#commands = commands;
    this.#sandboxEnd = sandboxEnd;
  }

  /** What a new sandbox is made from. The clone happens when that is captured. */
  async origin(repository: Repository, input: CreateInput, signal: AbortSignal | undefined): Promise<Origin> {
    refuseWider("allow-list", this.#parts.user.network);
    const view = await openWorkspace(this.#parts, repositoryName(repository.url));
    const start = startingPoint(repository, null);
    return {
      view,
      start,
      opens: [hostOf(repository.url)],
      capture: (backend) => this.#capture(view, backend, { repository, input, signal }),
    };
  }

  async #capture(view: ProjectView, backend: Backend, request: CloneRequest): Promise<Captured> {
    const user = request.input.user ?? String(this.#parts.uid);
    const row = await this.#workplace(view, user, request);
    try {
      await this.#clone(row, view, request);
      this.#parts.reach("clone.made");
      const found = await this.#look(row, request);
      const base = await this.#freeze(row, view, backend);
      this.#parts.reach("clone.frozen");
      return { base, ...found };
    } finally {
      await this.#clear(row);
    }
  }

  /** The sandbox that git runs in. It is held: a server that starts removes one that an earlier server left. */
  async #workplace(view: ProjectView, user: string, { repository, input }: CloneRequest): Promise<SandboxRow> {
    const network = { ...view.config.network, mode: "allow-list" as const, allow: [hostOf(repository.url)] };
    const origin: Origin = {
      view: { ...view, config: { ...view.config, network } },
      start: startingPoint(repository, null),
      capture: async (backend) => ({ base: await emptyBase(this.#parts, view, backend, user) }),
    };
    const { row } = await this.#creation.create(
      {
        user,
        // Variables of a git that calls viv, as in a hook, are about another repository.
        env: Object.fromEntries(Object.entries(input.env ?? {}).filter(([name]) => !/^GIT_(?!SSL_)/.test(name))),
        ...(input.limits === undefined ? {} : { limits: input.limits }),
        readOnly: true,
        idleMs: 0,
        held: true,
        labels: { role: "clone" },
      },
      origin,
    );
    return row;
  }

  async #clone(row: SandboxRow, view: ProjectView, { repository, signal }: CloneRequest): Promise<void> {
    const { url, ref, timeoutMs = LIMITS.cloneTimeoutMs } = repository;
    const login = await this.#login(url, view.row.path);
    const settings = [...SETTINGS, ...(login === undefined ? [] : [HELPER])].flatMap((setting) => ["-c", setting]);
    const env = { ...VARIABLES, ...(login === undefined ? {} : { VIV_CLONE_LOGIN: login.placeholder }) };
    const git = async (...words: readonly string[]): Promise<void> => {
      const result = await this.#run(row, { command: ["git", ...settings, ...words], env, timeoutMs }, signal);
      if (result.end?.exitCode === 0) return;
      if (signal?.aborted === true) throw cancelled();
      const refused = this.#parts.egress.use(row.id).denied > 0;
      throw explainClone(result, { ...repository, timeoutMs, limits: row.limits, login, refused });
    };
    const isCommit = ref !== undefined && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(ref);
    const branch = ref === undefined || isCommit ? [] : ["--branch", ref];
    await git("clone", "--quiet", "--no-recurse-submodules", ...branch, "--", url, WORKSPACE);
    if (isCommit) await git("checkout", "--quiet", "--detach", ref, "--");
  }

  /** The secret that is kept for the repository, if there is one. Its value stays where it is. */
  async #login(url: string, project: string): Promise<Login | undefined> {
    const { protocol, pathname } = new URL(url);
    if (protocol !== "https:") return undefined;
    const { host, ports = [] } = hostOf(url);
    const to = { protocol: "https" as const, host, port: ports[0] ?? 0 };
    const fetches = [
      { ...to, method: "GET", path: `${pathname}/info/refs` },
      { ...to, method: "POST", path: `${pathname}/git-upload-pack` },
    ];
    const secrets = (await this.#parts.store.secrets.list()).filter(
      (secret) => fetches.every((fetch) => isBound(secret, fetch)) && /^authorization:/i.test(secret.header ?? "Authorization:"),
    );
    // One that a person has to be asked for comes last.
    return secrets.find(({ projects }) => projects === null || projects.includes(project)) ?? secrets[0];
  }

  /** What was cloned, as git inside says it. */
  async #look(row: SandboxRow, { repository, signal }: CloneRequest): Promise<Omit<Captured, "base">> {
    const ask = (...words: readonly string[]): Promise<CommandResult> =>
      this.#run(row, { command: ["git", ...words], env: VARIABLES, timeoutMs: LIMITS.cloneQuestionMs }, signal);
    const head = await ask("rev-parse", "--verify", "--quiet", "HEAD");
    const commit = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.exec(head.stdout.trim())?.[0] ?? null;
    const submodules = commit !== null && (await ask("cat-file", "-e", "HEAD:.gitmodules")).end?.exitCode === 0;
    return {
      start: startingPoint(repository, commit),
      notes: [
        ...(commit === null ? [`${repository.url} has no commit yet.`] : []),
        ...(submodules ? ["The repository has submodules, which were not fetched: `git submodule update --init` inside does that."] : []),
      ],
    };
  }

  async #run(row: SandboxRow, spec: { command: string[]; env: Record<string, string>; timeoutMs: number }, signal?: AbortSignal) {
    if (signal?.aborted === true) throw cancelled();
    try {
      return await this.#commands.run(row, spec, undefined, signal);
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "command_not_found") throw error;
      throw new VivError("unsupported", "git is not installed on this machine.", { remedy: "Install git, and try again.", cause: error });
    }
  }

  /** Its processes have ended by then, and nothing inside changes any more. */
  async #freeze(row: SandboxRow, view: ProjectView, backend: Backend): Promise<Base> {
    return this.#parts.locks.run(row.id, async () => {
      await this.#sandboxEnd.endProcesses(row, 0, "cancelled");
      const { new: source } = await backend.storage.comparison.sides({ volume: row.id }, row.base);
      return backend.capture.take({ project: view.row.id, path: WORKSPACE, source });
    });
  }

  async #clear({ id, name }: SandboxRow): Promise<void> {
    const { locks, store, log } = this.#parts;
    try {
      await locks.run(id, async () => {
        const now = await store.sandboxes.get(id);
        if (now !== undefined) await this.#sandboxEnd.remove(now);
      });
    } catch (error) {
      log.warn("the sandbox of a clone was not removed", { sandbox: id, name, error: errorText(error) });
    }
  }
}

function cancelled(): VivError {
  return new VivError("cancelled", "The clone of the repository was cancelled.");
}

function startingPoint({ url, ref }: Repository, commit: string | null): StartingPoint {
  return { from: "git", url, ref: ref ?? null, commit };
}

/** The host and port of an address, as rules of the network name them. */
function hostOf(url: string): HostRule {
  const { hostname, port, protocol } = new URL(url);
  const usual = protocol === "https:" ? 443 : 80;
  return { host: canonicalHost(hostname.replace(/^\[|\]$/g, "")), ports: [port === "" ? usual : Number(port)], tcp: false };
}
