/** The time of day of a server, which a test sets. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PRELOADED = fileURLToPath(new URL("jumping-clock.mjs", import.meta.url));

export class JumpingClock {
  readonly #folder = mkdtempSync(join(tmpdir(), "viv-clock-"));
  #offset = 0;

  /** For the environment of the server. */
  get env(): Readonly<Record<string, string>> {
    return { NODE_OPTIONS: `--import=${PRELOADED}`, TEST_CLOCK: join(this.#folder, "offset") };
  }

  now(): number {
    return Date.now() + this.#offset;
  }

  /** Sets it to an hour and a minute of the day that it is in, in the machine's time zone; with days added. */
  set(hour: number, minute: number, days = 0): void {
    const at = new Date(this.now());
    at.setHours(hour, minute, 0, 0);
    at.setDate(at.getDate() + days);
    this.jump(at.getTime() - this.now());
  }

  /** Ahead by so many milliseconds, or back. */
  jump(ms: number): void {
    this.#offset += ms;
    writeFileSync(join(this.#folder, "offset"), String(this.#offset));
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
