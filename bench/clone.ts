/** How the size of a project, and a change in it, show in the time of a create. */
import { mkdirSync, statfsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { compare, pairCount } from "./measure.ts";
import { changeFiles, makeProject } from "./projects.ts";
import type { Group, Key, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

const LARGE_FILES = 50_000;
const CHANGED_FILES = 10;
const GROWTH_PAIRS = 60;
const ROOM_BYTES = 20 * 1024 ** 3;

export const cloneGroup: Group = {
  keys: ["clone_growth", "clone_after_change"],
  async measure(settings) {
    return BenchServer.with(async (server) => {
      const { wanted, progress } = settings;
      const large = join(server.place, "large");
      progress(`a project of ${LARGE_FILES} files`);
      makeProject(large, LARGE_FILES);
      // The first create captures it all; from then on it is watched.
      await server.createAndRemove(large);
      const outcomes: Partial<Record<Key, Measured>> = {};
      if (wanted.has("clone_growth")) {
        progress("clone_growth");
        outcomes.clone_growth = await growth(server, large, settings);
      }
      if (wanted.has("clone_after_change")) {
        progress("clone_after_change");
        outcomes.clone_after_change = await afterChange(server, large, settings);
      }
      return outcomes;
    });
  },
};

function growth(server: BenchServer, large: string, { quick }: Settings): Promise<Measured> {
  return compare({
    pairs: pairCount(quick, GROWTH_PAIRS),
    sides: [
      [`${LARGE_FILES} files`, () => server.createAndRemove(large)],
      ["50 files", () => server.createAndRemove()],
    ],
  });
}

async function afterChange(server: BenchServer, large: string, { quick }: Settings): Promise<Measured> {
  const spawner = new Spawner();
  const copies = join(server.place, "copies");
  mkdirSync(copies);
  let copied = 0;
  // ext4 goes around inodes that were deleted a moment ago, which makes the next copy several times slower: where there
  // is room, copies stay until the end.
  const { bavail, bsize } = statfsSync(copies);
  const roomy = bavail * bsize > ROOM_BYTES;
  try {
    return await compare({
      pairs: pairCount(quick),
      warmUp: 1,
      sides: [
        [
          "create",
          async () => {
            changeFiles(large, LARGE_FILES, CHANGED_FILES);
            return server.createAndRemove(large);
          },
        ],
        [
          "cp -a",
          async () => {
            const copy = join(copies, String((copied += 1)));
            const ms = await spawner.run(["cp", "-a", large, copy]);
            if (!roomy) await rm(copy, { recursive: true });
            await spawner.run(["sync", "-f", copies]);
            return ms;
          },
        ],
      ],
    });
  } finally {
    await spawner.close();
  }
}
