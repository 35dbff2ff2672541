/** Files of the server's own that variables of commands name: written inside once, before the first command that needs them. */
import { Readable } from "node:stream";
import type { LiveSandbox } from "../shared/live.ts";
import type { ModelVariables } from "../shared/parts.ts";

export class ModelFiles {
  readonly #variables: ModelVariables;
  readonly #written = new WeakMap<LiveSandbox, Promise<void>>();

  constructor(variables: ModelVariables) {
    this.#variables = variables;
  }

  /** For sandboxes with walls alone: without them these paths are reality's. */
  async to(live: LiveSandbox, user: string, present: Readonly<Record<string, string>>): Promise<void> {
    const writing = this.#written.get(live) ?? this.#write(live, user, present);
    if (writing === undefined) return;
    this.#written.set(live, writing);
    try {
      await writing;
    } catch (error) {
      // The next command tries again.
      this.#written.delete(live);
      throw error;
    }
  }

  #write(live: LiveSandbox, user: string, present: Readonly<Record<string, string>>): Promise<void> | undefined {
    const files = Object.entries(this.#variables.files(present));
    if (files.length === 0) return undefined;
    return Promise.all(
      files.map(([path, content]) => live.walls.files.write(path, user, Readable.from([Buffer.from(content)]), { mode: 0o644 })),
    ).then(() => undefined);
  }
}
