import { DatabaseSync } from "node:sqlite";
import { VivError } from "../schema/errors.ts";

/**
 * Holds a file for this process alone until it ends, however it ends. Node has no door to file locks, SQLite has:
 * the kernel drops its lock with the process, so there is no stale one to tell from a live one.
 */
export function holdExclusively(file: string, home: string): () => void {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec("pragma locking_mode = exclusive; begin exclusive");
  } catch (error) {
    database.close();
    throw new VivError("server_running", `Another server works with the state folder ${home}.`, { cause: error });
  }
  return () => database.close();
}
