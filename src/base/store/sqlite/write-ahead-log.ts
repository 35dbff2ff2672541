/**
 * SQLite commits into its write-ahead log without waiting for the disk, so that changes don't hold up the event loop. A caller
 * that needs its change on the disk waits here. Everything that was committed is in that file, or was synced when it was moved from there.
 * Where the disk is quick and little is to be synced, that is done in the event loop: it takes less time than the way to a thread and back.
 */
import { fdatasyncSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { SyncPlace } from "./sync-place.ts";

export class WriteAheadLog {
  readonly #path: string;
  readonly #place: SyncPlace;
  #file: Promise<FileHandle> | undefined;

  constructor(database: string, place = new SyncPlace()) {
    this.#path = `${database}-wal`;
    this.#place = place;
  }

  async sync(): Promise<void> {
    // SQLite holds no lock on this file, so that closing a descriptor of it takes none away.
    this.#file ??= open(this.#path, "r+");
    const file = await this.#file.catch((error: unknown) => {
      this.#file = undefined;
      throw error;
    });
    const began = performance.now();
    let failed = true;
    try {
      if (this.#place.begin(began) === "loop") fdatasyncSync(file.fd);
      else await file.datasync();
      failed = false;
    } finally {
      this.#place.end(began, performance.now(), failed);
    }
  }

  async close(): Promise<void> {
    const file = await this.#file?.catch(() => undefined);
    this.#file = undefined;
    await file?.close();
  }
}
