/** Real storages for tests, each in a folder of its own that is taken away afterwards. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { BtrfsVolumes } from "../../src/machine/volumes/btrfs/volumes.ts";
import { PlainVolumes } from "../../src/machine/volumes/plain/volumes.ts";
import type { Volumes } from "../../src/machine/volumes/volumes.ts";

export const CELL = process.env["VIV_CELL"] ?? join(import.meta.dirname, "../../build/cell");

export interface Storage {
  readonly home: string;
  readonly host: CellHost;
  readonly volumes: Volumes;
  /** A second server on the same folder, as after a crash of the first. */
  reopen(): Promise<Volumes>;
  remove(): Promise<void>;
}

export async function makeStorage(name: "btrfs" | "plain", limitBytes = 2 * 1024 ** 3): Promise<Storage> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "viv-storage-")));
  const host = new CellHost({ program: CELL });
  await host.request("measure", [["path", home]]);
  const open = async (): Promise<Volumes> =>
    name === "btrfs" ? BtrfsVolumes.open(host, { home, shared: "joined", limitBytes }) : PlainVolumes.open(host, { home });
  const volumes = await open();
  const opened = [volumes];
  return {
    home,
    host,
    volumes,
    async reopen() {
      const next = await open();
      opened.push(next);
      return next;
    },
    async remove() {
      for (const each of opened) await each.close(false);
      if (volumes instanceof BtrfsVolumes) await volumes.pool.unmount();
      else await host.request("remove", [["path", join(home, "volumes")]]);
      await host.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
