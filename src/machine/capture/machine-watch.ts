/** Whether the machine still is as it was when it was last looked at for what must be hidden. Asked of the kernel at each launch. */
import { dirname, join } from "node:path";
import type { CellHost } from "../../base/host/cell-host.ts";
import { CellError } from "../../base/host/helper.ts";
import { joinParts } from "../../base/host/frames.ts";
import { realPlace } from "../../base/host/real-place.ts";
import { ABSENT, EMPTY_FOLDERS, SEARCHED, TOOLCHAIN_SECRETS } from "./mask-rules.ts";
import { homeFolders, readPeople } from "./people.ts";
import { SYSTEM_FILES } from "./sanitise.ts";

/** The helper's own bound on levels. */
const ALL_LEVELS = 64;

export class MachineWatch {
  readonly #host: CellHost;
  readonly #own: readonly string[];
  #version = 0;
  /** The question under way, and the one after it. */
  #last: Promise<number> | undefined;
  #next: Promise<number> | undefined;

  /** `own` is Vivarium's own, which is hidden whatever is in it. */
  constructor(host: CellHost, own: readonly string[]) {
    this.#host = host;
    this.#own = own;
  }

  /** Another number after each change of the machine. What is looked at after it is known is new enough for it. */
  version(): Promise<number> {
    // At once, before the kernel is busy with what the caller asks for next.
    if (this.#last === undefined) return this.#begin();
    // Callers that come while an earlier question is under way share the one after it.
    this.#next ??= this.#last.then(
      () => this.#begin(),
      () => this.#begin(),
    );
    return this.#next;
  }

  #begin(): Promise<number> {
    this.#next = undefined;
    const asked = this.#ask();
    this.#last = asked;
    const over = (): void => {
      if (this.#last === asked) this.#last = undefined;
    };
    asked.then(over, over);
    return asked;
  }

  async #ask(): Promise<number> {
    const answer = await this.#host.request("machine.changed");
    if (!answer.flag("changed")) return this.#version;
    this.#version += 1;
    try {
      await this.#host.request("machine.watch", this.#places());
    } catch (error) {
      // Where nothing can be watched, everything counts as changed each time.
      if (!(error instanceof CellError)) throw error;
    }
    return this.#version;
  }

  #places(): (readonly [string, string | Buffer])[] {
    const patterns = TOOLCHAIN_SECRETS.filter((path) => path.endsWith("*")).map((path) => dirname(path));
    const folders = [
      ...SEARCHED,
      ...Object.keys(SYSTEM_FILES).map((path) => [dirname(path), 1] as const),
      ...homeFolders(readPeople()).flatMap((home) => patterns.map((path) => [join(home, path), 1] as const)),
    ];
    const hidden = [...EMPTY_FOLDERS, ...ABSENT, ...this.#own];
    return [
      ...folders.map(([path, levels]) => ["folder", joinParts([realPlace(path), String(Math.min(levels, ALL_LEVELS))])] as const),
      ...[...new Set(hidden.flatMap((path) => [path, realPlace(path)]))].map((path) => ["skip", path] as const),
    ];
  }
}
