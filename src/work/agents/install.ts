/**
 * Fetches the programs of agents by npm, in the versions of known-agents.ts, into `<folder>/NAME/VERSION`.
 *
 * An install is made under a name aside and renamed when it is whole: a folder of that name is always a whole one, and of two installs
 * at once the first that is done stays. No script of a package is run: the server may be root, and sandboxes are where such code belongs.
 */
import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KeyedLocks } from "../../base/host/locks.ts";
import { run, type RunResult } from "../../base/host/run.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { KNOWN_AGENTS, type KnownAgent } from "../../base/schema/known-agents.ts";
import { isProgram } from "./programs.ts";

export interface InstalledAgent {
  readonly name: string;
  readonly version: string;
  /** Absolute. */
  readonly program: string;
}

export interface AgentInstallsOptions {
  /** Where the folders of all agents are. */
  readonly folder: string;
  /** The server's own: npm gets of it what says where its registry is and how that is reached. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Variables that npm looks at. */
const FOR_NPM = /^(?:PATH|HOME|USER|TMPDIR|XDG_.*|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR)|npm_config_.*|(?:https?|all|no)_proxy)$/i;
/** A registry that does not answer is told soon. */
const PATIENCE = ["--fetch-retries=2", "--fetch-timeout=60000", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"];
const ASIDE = ".installing-";
/** What npm says when it gets no answer at all. */
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)\b/;

export class AgentInstalls {
  readonly #options: AgentInstallsOptions;
  readonly #locks = new KeyedLocks();

  constructor(options: AgentInstallsOptions) {
    this.#options = options;
  }

  /** The install of the version that is known; undefined if there is none. */
  find(name: string): InstalledAgent | undefined {
    const known = KNOWN_AGENTS[name];
    return known === undefined ? undefined : this.#lookIn(this.#placeOf(name, known), name, known);
  }

  /** Fetches it, if it is not there. */
  async install(name: string, signal?: AbortSignal): Promise<InstalledAgent> {
    const known = KNOWN_AGENTS[name];
    if (known === undefined)
      throw new VivError("agent_missing", `There is no agent ${name} that can be installed.`, {
        remedy: `Use one of ${Object.keys(KNOWN_AGENTS).join(", ")}.`,
      });
    return this.#locks.run(name, async () => this.find(name) ?? (await this.#fetch(name, known, signal)));
  }

  async #fetch(name: string, known: KnownAgent, signal: AbortSignal | undefined): Promise<InstalledAgent> {
    const place = this.#placeOf(name, known);
    await mkdir(dirname(place), { recursive: true, mode: 0o755 });
    await removeAbandoned(dirname(place));
    const aside = await mkdtemp(join(dirname(place), ASIDE));
    try {
      await this.#npm(aside, known, signal);
      if (this.#lookIn(aside, name, known) === undefined)
        throw new VivError("agent_install", `${known.package} ${known.version} has no program for this machine (${process.arch}).`);
      // mkdtemp lets only its owner in; sandboxes of other users read it, too.
      await run("chmod", ["-R", "a-w,a+rX", aside]);
      await settle(aside, place);
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
    const installed = this.#lookIn(place, name, known);
    if (installed === undefined) throw new VivError("agent_install", `${place} holds no whole install.`, { remedy: `Remove ${place}.` });
    return installed;
  }

  async #npm(folder: string, known: KnownAgent, signal: AbortSignal | undefined): Promise<void> {
    const wanted = `${known.package}@${known.version}`;
    const quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];
    // A version that was named is fetched whatever the Node of this machine: most of these programs bring what they need.
    const args = ["install", "--prefix", folder, "--ignore-scripts", "--save-exact", ...quiet, ...PATIENCE, wanted];
    const env = Object.fromEntries(
      Object.entries(this.#options.env).flatMap(([name, value]) => (value !== undefined && FOR_NPM.test(name) ? [[name, value]] : [])),
    );
    const options = { cwd: folder, env, timeoutMs: LIMITS.agentInstallTimeoutMs, ...(signal && { signal }) };
    const ended = await run("npm", args, options).catch((cause: unknown) => {
      signal?.throwIfAborted();
      throw new VivError("agent_install", "npm can't be run, which fetches agents.", { cause, remedy: "Install npm, then try again." });
    });
    if (ended.code !== 0) throw failureOf(wanted, ended);
  }

  #placeOf(name: string, { version }: KnownAgent): string {
    return join(this.#options.folder, name, version);
  }

  #lookIn(place: string, name: string, { version, programs }: KnownAgent): InstalledAgent | undefined {
    const program = programs(process.arch)
      .map((path) => join(place, path))
      .find(isProgram);
    return program === undefined ? undefined : { name, version, program };
  }
}

/** Gives the install its name, unless another one has it by now. */
async function settle(aside: string, place: string): Promise<void> {
  try {
    // A folder that can't be written can be renamed only by root.
    await run("chmod", ["u+w", aside]);
    await rename(aside, place);
    await run("chmod", ["a-w", place]);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    await run("chmod", ["-R", "u+w", aside]);
  }
}

/** What installs left behind that were killed: none takes this long. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (!name.startsWith(ASIDE)) continue;
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > 2 * LIMITS.agentInstallTimeoutMs) await rm(path, { recursive: true, force: true });
  }
}

function failureOf(wanted: string, { code, stderr }: RunResult): VivError {
  const said = stderr
    .split("\n")
    .filter((line) => /^npm (?:error|ERR!)/.test(line) && !line.includes("A complete log"))
    .map((line) => line.replace(/^npm (?:error|ERR!)\s*/, ""))
    .join(" ")
    .slice(0, 500);
  if (code === null) return new VivError("agent_install", `npm did not fetch ${wanted} in time.`);
  if (UNREACHABLE.test(stderr)) return new VivError("agent_install", `npm can't reach its registry, so ${wanted} was not fetched: ${said}`);
  return new VivError("agent_install", `npm did not install ${wanted}: ${said}`);
}
