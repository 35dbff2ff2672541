/** Fires when a line is written to a log. Lines are compared with a text that holds stars: that takes no longer than the line is long. */
import { dirname } from "node:path";
import { compile, matches, type Pattern } from "../../../base/policy/pattern.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { Clock } from "../clock.ts";
import type { Sighting } from "../firing-record.ts";
import type { Causes } from "../self-caused.ts";
import { endOfLog, newLines, type LogPlace } from "./log-tail.ts";
import { PolledTrigger } from "./polled.ts";
import type { Cursor, Saw, Trouble } from "./trigger.ts";
import { WatchedFolders } from "./watched-folders.ts";

export interface LogTriggerParts {
  readonly file: string;
  readonly line: string;
  readonly clock: Clock;
  readonly saw: Saw;
  readonly trouble: Trouble;
  /** Automations whose promotions led to what was just written; undefined where none did. */
  readonly causesOf: () => Promise<Causes>;
}

export class LogTrigger extends PolledTrigger {
  readonly #all: LogTriggerParts;
  readonly #pattern: Pattern;
  readonly #folder: WatchedFolders;
  #place: LogPlace | undefined;

  constructor(all: LogTriggerParts, cursor: Cursor) {
    super(all.clock, LIMITS.scanEveryMs, all.trouble);
    this.#all = all;
    this.#pattern = compile(all.line);
    const { inode, offset } = cursor;
    if (typeof offset === "number") this.#place = { inode: typeof inode === "number" ? inode : null, offset };
    const name = all.file.slice(dirname(all.file).length).replace(/^\//, "");
    this.#folder = new WatchedFolders(
      (_, changed) => (changed === null || changed === name ? this.pollNow() : undefined),
      () => undefined,
    );
  }

  override async start(): Promise<void> {
    this.#folder.add(dirname(this.#all.file));
    if (this.#place === undefined) {
      const place = await endOfLog(this.#all.file);
      await this.#all.saw([], { ...place });
      this.#place = place;
    }
    await super.start();
  }

  override async stop(): Promise<void> {
    this.#folder.close();
    await super.stop();
  }

  protected async poll(): Promise<void> {
    this.#folder.add(dirname(this.#all.file));
    for (let more = true; more && !this.stopping.signal.aborted;) {
      const before = this.#place ?? { inode: null, offset: 0 };
      const read = await newLines(this.#all.file, before);
      const texts = read.lines.filter((line) => matches(this.#pattern, line));
      if (read.skipped > 0) texts.push(`${read.skipped} bytes of the log were passed over: too much was written.`);
      const causes = texts.length === 0 ? undefined : await this.#all.causesOf();
      const found = texts.map((text): Sighting => ({ key: null, text, causes }));
      const isMoved = read.place.inode !== before.inode || read.place.offset !== before.offset;
      // A place that only moved on is kept with what is found next: lines that do not match are read again by the next server.
      if (found.length > 0 || (isMoved && read.place.inode !== before.inode)) await this.#all.saw(found, { ...read.place });
      this.#place = read.place;
      more = read.more;
    }
  }

  async look(): Promise<{ wouldFire: boolean; seen: string }> {
    const { offset } = this.#place ?? (await endOfLog(this.#all.file));
    return { wouldFire: false, seen: `${this.#all.file} is read up to byte ${offset}.` };
  }
}
