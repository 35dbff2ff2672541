/** Real storages for tests, each in a folder of its own that is taken away afterwards. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { openBtrfs } from "../../src/machine/volumes/btrfs/storage.ts";
import { openFolder } from "../../src/machine/volumes/folder/storage.ts";
import { openPlain } from "../../src/machine/volumes/plain/storage.ts";
import type { Storage } from "../../src/machine/volumes/volumes.ts";

export const CELL = process.env["VIV_CELL"] ?? join(import.meta.dirname, "../../build/cell");

export type StorageName = Storage["name"];

export interface StorageLab {
  readonly home: string;
  readonly host: CellHost;
  readonly storage: Storage;
  /** A second server on the same folder, as after a crash of the first. */
  reopen(): Promise<Storage>;
  remove(): Promise<void>;
}

export async function makeStorage(name: StorageName, limitBytes = 2 * 1024 ** 3): Promise<StorageLab> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "viv-storage-")));
  const host = new CellHost({ program: CELL });
  await host.request("measure", [["path", home]]);
  const ways: Record<StorageName, () => Promise<Storage>> = {
    btrfs: () => openBtrfs(host, { home, shared: "joined", limitBytes }),
    plain: () => openPlain(host, { home }),
    folder: () => openFolder({ home }),
  };
  const open = ways[name];
  const storage = await open();
  const opened = [storage];
  return {
    home,
    host,
    storage,
    async reopen() {
      const next = await open();
      opened.push(next);
      return next;
    },
    async remove() {
      for (const each of opened) await each.close(false);
      if (name === "btrfs") await storage.close(true);
      for (const folder of ["volumes", "folders"]) await host.request("remove", [["path", join(home, folder)]]);
      await host.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
