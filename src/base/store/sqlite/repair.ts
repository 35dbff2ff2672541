/** Opens the database of a server; a damaged one is brought back from its newest backup first, if that was asked for. */
import { VivError } from "../../schema/errors.ts";
import { Restoration } from "../restoration.ts";
import type { Store } from "../store.ts";
import { restoreBackup } from "./backups.ts";
import { openSqliteStore } from "./sqlite.ts";

export async function openStore(path: string, repair: boolean): Promise<{ store: Store; restoration: Restoration }> {
  const restoration = new Restoration(path);
  try {
    return { store: await openSqliteStore(path), restoration };
  } catch (error) {
    const isDamaged = error instanceof VivError && error.code === "store_corrupt";
    // Noted before anything is moved: a server that finds the backup in place must find the note, too.
    const restored = isDamaged && repair ? restoreBackup(path, new Date(), (found) => restoration.note(found)) : undefined;
    if (restored === undefined) throw error;
    return { store: await openSqliteStore(path), restoration };
  }
}
