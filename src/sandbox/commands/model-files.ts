/** Files of the server's own that variables of commands name: written inside once, before the first command that needs them. */
import { Readable } from "node:stream";
import type { LiveSandbox } from "../shared/live.ts";
import type { ModelVariables } from "../shared/parts.ts";

export class ModelFiles {
  readonly #variables: ModelVariables;
  readonly #written = new WeakMap<LiveSandbox, Promise<boolean>>();

  constructor(variables: ModelVariables) {
    this.#variables = variables;
  }

  /** For sandboxes with walls alone: without them these paths are reality's. */
  async to(live: LiveSandbox, user: string, present: Readonly<Record<string, string>>): Promise<void> {
    const writing = this.#written.get(live) ?? this.#write(live, user, present);
    this.#written.set(live, writing);
    try {
      // The next command asks again where there is nothing to write yet.
      if (!(await writing)) this.#written.delete(live);
    } catch (error) {
      // The next command tries again.
      this.#written.delete(live);
      throw error;
    }
  }

  /** Whether there was a file to write. */
  async #write(live: LiveSandbox, user: string, present: Readonly<Record<string, string>>): Promise<boolean> {
    const files = Object.entries(await this.#variables.files(present));
    await Promise.all(
      files.map(([path, content]) => live.walls.files.write(path, user, Readable.from([Buffer.from(content)]), { mode: 0o644 })),
    );
    return files.length > 0;
  }
}
