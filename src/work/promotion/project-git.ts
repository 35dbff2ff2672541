/**
 * Git in the real repository of a project, as its owner. It adds objects and branches; it never runs a hook, and never touches
 * checkout, index, HEAD or stash. What the user's own settings say counts only where it is asked for: who they are, how they log in.
 */
import { chown, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { specialForGit } from "../../machine/capture/git-special.ts";
import { readPeople } from "../../machine/capture/people.ts";
import { readRegular } from "../../base/host/regular-file.ts";
import { runAlone } from "../../base/host/run-alone.ts";
import { run, TOOL_PATH, type RunResult } from "../../base/host/run.ts";
import type { ForeignRepository } from "../../machine/merge/store.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { TemporaryRepository } from "./temporary-repository.ts";

export interface Identity {
  readonly name: string;
  readonly email: string;
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** The server runs as another user than the owner, and may become the owner. */
  readonly become: boolean;
}

/** The state folder is closed to other users than the server's own. */
const LENT = "/tmp/viv-git-";
const TIMEOUT_MS = 10 * 60_000;
const NO_HOOKS = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "-c", "gc.auto=0"];
/** What ssh agents, keyrings and proxies are found by. */
const USER_VARIABLES =
  /^(SSH_AUTH_SOCK|XDG_(CONFIG_HOME|RUNTIME_DIR|CACHE_HOME)|DBUS_SESSION_BUS_ADDRESS|GNUPGHOME|SSL_CERT_(FILE|DIR)|(https?|all|no)_proxy)$/i;

/** A list of commits, 41 bytes each. */
const MOST_SHALLOW_BYTES = 16 * 1024 ** 2;

export class ProjectGit {
  readonly folder: string;
  readonly #owner: Owner;
  readonly #variables: Readonly<Record<string, string>>;

  private constructor(folder: string, owner: Owner, variables: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.#owner = owner;
    this.#variables = variables;
  }

  /** `variables` are the environment of the user whom the server works for; what logins need of it is used, for that user alone. */
  static async open(folder: string, variables: Readonly<Record<string, string | undefined>> = {}): Promise<ProjectGit> {
    const special = await specialForGit(folder);
    if (special !== undefined) {
      throw new VivError("unsupported", `Git can't read the repository of ${folder}: ${special} is no regular file.`, {
        remedy: `Remove ${special}, or promote without \`--branch\`.`,
      });
    }
    const { uid, gid } = await stat(folder);
    const own = process.getuid?.() ?? uid;
    const home = readPeople().find((person) => person.uid === uid)?.home ?? "/nonexistent";
    const become = own === 0 && uid !== 0;
    const kept = Object.entries(variables).flatMap(([name, value]) =>
      own === uid && value !== undefined && USER_VARIABLES.test(name) ? [[name, value]] : [],
    );
    const given = own === uid ? variables["HOME"] : undefined;
    return new ProjectGit(folder, { uid, gid, home: given ?? home, become }, Object.fromEntries(kept) as Record<string, string>);
  }

  get #identity(): { uid?: number; gid?: number } {
    return this.#owner.become ? { uid: this.#owner.uid, gid: this.#owner.gid } : {};
  }

  /**
   * With the repository's own settings, the user's only where that is said, and no way to any network. It is for what runs no program
   * whatever the settings say: what speaks to a remote runs in a temporary repository.
   */
  async ask(
    args: readonly string[],
    options: {
      input?: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
      env?: Readonly<Record<string, string>>;
      userSettings?: boolean;
    } = {},
  ): Promise<RunResult> {
    const env = {
      PATH: TOOL_PATH,
      LC_ALL: "C",
      ...(options.userSettings === true
        ? { ...this.#variables, HOME: this.#owner.home }
        : { HOME: "/nonexistent", GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" }),
      GIT_OPTIONAL_LOCKS: "0",
      GIT_TERMINAL_PROMPT: "0",
      GIT_NO_LAZY_FETCH: "1",
      GIT_NO_REPLACE_OBJECTS: "1",
      GIT_ALLOW_PROTOCOL: "none",
    };
    return run("git", ["-C", this.folder, ...NO_HOOKS, ...args], {
      ...(options.input === undefined ? {} : { input: options.input }),
      env: { ...env, ...options.env },
      timeoutMs: TIMEOUT_MS,
      ...this.#identity,
    });
  }

  async #tell(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.ask(args);
    if (code === 0) return stdout.toString("latin1");
    throw new VivError("unsupported", `${this.folder} is no git repository that can be read: ${lastLine(stderr)}.`, {
      remedy: "A branch needs a project under git; `viv promote` without `--branch` needs none.",
    });
  }

  /** With the user's settings and logins, in the repository that `env` names; git asks no questions. */
  async asUser(
    args: readonly string[],
    options: { timeoutMs: number; env: TemporaryRepository["env"]; signal?: AbortSignal },
  ): Promise<RunResult> {
    const env = {
      ...this.#variables,
      PATH: TOOL_PATH,
      LC_ALL: "C",
      HOME: this.#owner.home,
      GIT_TERMINAL_PROMPT: "0",
      GIT_ASKPASS: "true",
      SSH_ASKPASS_REQUIRE: "never",
      ...options.env,
    };
    const { timeoutMs, signal } = options;
    const settings = { cwd: this.folder, env, timeoutMs, ...(signal === undefined ? {} : { signal }), ...this.#identity };
    return runAlone("git", [...NO_HOOKS, ...args], settings);
  }

  /** Where the repository's objects are, and where in the repository the project is: nothing, or a folder with a slash. */
  async repository(): Promise<ForeignRepository & { readonly prefix: Buffer }> {
    const places = ["objects", "shallow"].flatMap((name) => ["--git-path", name]);
    const answer = await this.#tell(["rev-parse", "--show-object-format", "--show-prefix", ...places]);
    const [format, prefix = "", objects = "", shallow = "", ...rest] = answer.split("\n");
    if ((format !== "sha1" && format !== "sha256") || rest.join("") !== "")
      throw new VivError("unsupported", `The git repository of ${this.folder} is of a kind that is not known here.`);
    const at = (path: string): string => resolve(this.folder, Buffer.from(path, "latin1").toString());
    return {
      format,
      prefix: Buffer.from(prefix, "latin1"),
      objects: at(objects),
      shallow: (await readRegular(at(shallow), MOST_SHALLOW_BYTES)) ?? null,
    };
  }

  /** The user as git knows them. */
  async identity(): Promise<Identity> {
    const { code, stdout } = await this.ask(["-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"], { userSettings: true });
    const [, name, email] = /^(.*) <(.*)> \d+ [+-]\d{4}\s*$/.exec(stdout.toString()) ?? [];
    if (code === 0 && name !== undefined && email !== undefined) return { name, email };
    throw new VivError("config_invalid", "Git does not know who you are, so a commit would have no author.", {
      remedy: "Run `git config --global user.name NAME` and `git config --global user.email ADDRESS`.",
    });
  }

  /** A folder outside the project that belongs to the owner, filled by `fill` before it does: what is theirs is not written to by others. */
  async lend(fill: (folder: string) => void): Promise<string> {
    const folder = await mkdtemp(LENT);
    try {
      fill(folder);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
    const { become, uid, gid } = this.#owner;
    if (!become) return folder;
    for (const name of await readdir(folder, { recursive: true })) await chown(join(folder, name), uid, gid);
    await chown(folder, uid, gid);
    return folder;
  }

  /** Removed with the owner's rights. */
  async takeBack(folder: string): Promise<void> {
    await run("rm", ["-rf", "--", folder], { env: { PATH: TOOL_PATH }, ...this.#identity });
  }

  /** The commit that a branch is on; undefined if there is no such branch. */
  async branch(name: string): Promise<string | undefined> {
    const { code, stdout } = await this.ask(["rev-parse", "--verify", "--quiet", "--end-of-options", `refs/heads/${name}^{commit}`]);
    return code === 0 ? stdout.toString().trim() : undefined;
  }
}

export function lastLine(text: string): string {
  return (text.trim().split("\n").at(-1) ?? "").replace(/^(fatal|error): /, "").replace(/\.$/, "");
}
