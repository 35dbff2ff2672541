/** Tells when the user's config has changed since it was last read. */
import { statSync } from "node:fs";
import type { UserConfig } from "../schema/config.ts";
import { loadUserConfig } from "./project-config.ts";

export class UserConfigFile {
  readonly #file: string;
  #version: string | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /** The config if the file is another one than at the last call. Throws once for each change that can't be read. */
  changed(): UserConfig | undefined {
    const stats = statSync(this.#file, { throwIfNoEntry: false });
    const version = stats === undefined ? "none" : [stats.ino, stats.size, stats.mtimeMs].join(" ");
    if (version === this.#version) return undefined;
    this.#version = version;
    return loadUserConfig(this.#file);
  }
}

/** The user's config as its file is now; while that can't be read, as it was before. */
export class CurrentUserConfig {
  readonly #file: UserConfigFile;
  readonly #trouble: (error: unknown) => void;
  #config: UserConfig;

  constructor(file: string, config: UserConfig, trouble: (error: unknown) => void) {
    this.#file = new UserConfigFile(file);
    this.#config = config;
    this.#trouble = trouble;
  }

  get(): UserConfig {
    try {
      this.#config = this.#file.changed() ?? this.#config;
    } catch (error) {
      this.#trouble(error);
    }
    return this.#config;
  }
}
