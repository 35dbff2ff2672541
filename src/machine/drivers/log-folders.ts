/** Logs of commands: one folder a sandbox, with the files of log-reader.ts in it. */
import { trimFolder } from "../../base/host/trim.ts";
import type { CommandLog, CommandLogs } from "./drivers.ts";
import { readLog } from "./log-reader.ts";

export class LogFolders implements CommandLogs {
  readonly #folderOf: (sandbox: string) => string;
  readonly #kept: readonly string[];

  /** `kept` names other files of the folder, without their endings: a trim leaves them alone. */
  constructor(folderOf: (sandbox: string) => string, kept: readonly string[] = []) {
    this.#folderOf = folderOf;
    this.#kept = kept;
  }

  read(sandbox: string, command: string): Promise<CommandLog> {
    return readLog(this.#folderOf(sandbox), command);
  }

  trim(sandbox: string, running: ReadonlySet<string>, mostBytes: number): Promise<number> {
    return trimFolder(this.#folderOf(sandbox), new Set([...running, ...this.#kept]), mostBytes);
  }
}
