/**
 * SQLite commits into its write-ahead log without waiting for the disk, so that changes don't hold up the event loop. A caller
 * that needs its change on the disk waits here. Everything that was committed is in that file, or was synced when it was moved from there.
 */
import { open, type FileHandle } from "node:fs/promises";

export class WriteAheadLog {
  readonly #path: string;
  #file: Promise<FileHandle> | undefined;

  constructor(database: string) {
    this.#path = `${database}-wal`;
  }

  async sync(): Promise<void> {
    // SQLite holds no lock on this file, so that closing a descriptor of it takes none away.
    this.#file ??= open(this.#path, "r+");
    const file = await this.#file.catch((error: unknown) => {
      this.#file = undefined;
      throw error;
    });
    await file.datasync();
  }

  async close(): Promise<void> {
    const file = await this.#file?.catch(() => undefined);
    this.#file = undefined;
    await file?.close();
  }
}
