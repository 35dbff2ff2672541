/** Fires when a branch has another commit: of the project's own repository, or of a remote. */
import { join } from "node:path";
import { readRegular } from "../../../base/host/regular-file.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import { remoteCommit } from "../../promotion/remote-commit.ts";
import type { Clock } from "../clock.ts";
import type { Causes } from "../self-caused.ts";
import { repositoryOf } from "./git-folder.ts";
import { PolledTrigger } from "./polled.ts";
import type { Cursor, Saw, Trouble } from "./trigger.ts";
import { WatchedFolders } from "./watched-folders.ts";

export interface CommitTriggerParts {
  readonly project: string;
  readonly branch: string;
  readonly remote: string | undefined;
  readonly everyMs: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly saw: Saw;
  readonly trouble: Trouble;
  /** Automations whose promotions made this commit; undefined where none did. */
  readonly causesOf: (commit: string) => Promise<Causes>;
}

const MOST_PACKED_BYTES = 32 * 1024 ** 2;
const SHORT = 12;
const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

export class CommitTrigger extends PolledTrigger {
  readonly #all: CommitTriggerParts;
  readonly #folders: WatchedFolders;
  #known: string | undefined;

  constructor(all: CommitTriggerParts, cursor: Cursor) {
    super(all.clock, all.everyMs, all.trouble);
    this.#all = all;
    this.#known = typeof cursor["commit"] === "string" ? cursor["commit"] : undefined;
    this.#folders = new WatchedFolders(
      () => this.pollNow(),
      () => undefined,
    );
  }

  override async stop(): Promise<void> {
    this.#folders.close();
    await super.stop();
  }

  protected async poll(): Promise<void> {
    const commit = await this.#commit();
    if (commit === this.#known) return;
    const before = this.#known;
    const { branch, remote } = this.#all;
    const where = remote === undefined ? branch : `${branch} of ${remote}`;
    const text = `${where} is at ${commit.slice(0, SHORT)} now; it was at ${before?.slice(0, SHORT) ?? "none"}.`;
    // The first commit that is seen is where it begins.
    const causes = before === undefined ? undefined : await this.#all.causesOf(commit);
    await this.#all.saw(before === undefined ? [] : [{ key: `commit:${commit}`, text, causes }], { commit });
    this.#known = commit;
  }

  async look(): Promise<{ wouldFire: boolean; seen: string }> {
    const commit = await this.#commit();
    const seen = `${this.#all.branch} is at ${commit.slice(0, SHORT)}${this.#known === undefined ? ", and was not looked at before" : ""}.`;
    return { wouldFire: this.#known !== undefined && commit !== this.#known, seen };
  }

  async #commit(): Promise<string> {
    const { project, branch, remote, env } = this.#all;
    if (remote !== undefined)
      return remoteCommit({ project, remote, branch, variables: env, timeoutMs: LIMITS.remoteTimeoutMs, signal: this.stopping.signal });
    const folder = await repositoryOf(project);
    // The names of a branch with slashes lie in folders; packed ones lie in one file.
    const file = join(folder, "refs/heads", branch);
    for (const each of [folder, join(folder, "refs/heads"), join(file, "..")]) this.#folders.add(each);
    const loose = (await readRegular(file, LIMITS.seenCharacters))?.toString().trim();
    const commit = loose ?? (await packedCommit(folder, branch));
    if (commit !== undefined && COMMIT.test(commit)) return commit;
    throw new VivError("ref_not_found", `The repository of ${project} has no branch ${branch}.`);
  }
}

async function packedCommit(folder: string, branch: string): Promise<string | undefined> {
  const packed = (await readRegular(join(folder, "packed-refs"), MOST_PACKED_BYTES))?.toString();
  const line = packed?.split("\n").find((each) => each.endsWith(` refs/heads/${branch}`));
  return line?.split(" ", 1)[0];
}
