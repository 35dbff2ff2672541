/** Snapshot, rollback and fork of a sandbox where much has changed, against one where little has. */
import { compare, pairCount, series, timed, type Sample } from "./measure.ts";
import type { Absent, Group, Key, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";

const FOLDERS = 20;
const FILES_PER_FOLDER = 1000;
const FILE_BYTES = 25_000;
const LARGE = `${FOLDERS * FILES_PER_FOLDER} files, ${(FOLDERS * FILES_PER_FOLDER * FILE_BYTES) / 1e6} MB`;
const SMALL = "10 files";

export const snapshotGroup: Group = {
  keys: ["snapshot_growth", "snapshot_frozen_ms", "rollback_growth", "fork_growth"],
  async measure(settings) {
    return BenchServer.with(async (server) => {
      const { wanted, progress } = settings;
      if (server.storage !== "btrfs") return absent([...wanted], `volumes are on ${server.storage}; the row is about btrfs`);
      progress(`a sandbox with ${LARGE} changed`);
      const sandboxes = { large: await changed(server, FOLDERS, FILES_PER_FOLDER), small: await changed(server, 1, 10) };
      const outcomes: Partial<Record<Key, Measured>> = {};
      if (wanted.has("snapshot_growth") || wanted.has("snapshot_frozen_ms")) {
        progress("snapshot_growth");
        Object.assign(outcomes, await snapshots(server, sandboxes, settings));
      }
      if (wanted.has("rollback_growth")) {
        progress("rollback_growth");
        outcomes.rollback_growth = await growth(sandboxes, settings, (box) => () => rollBack(server, box));
      }
      if (wanted.has("fork_growth")) {
        progress("fork_growth");
        outcomes.fork_growth = await growth(
          sandboxes,
          settings,
          ({ id }) =>
            () =>
              server.forkAndRemove(id),
        );
      }
      return outcomes;
    });
  },
};

function absent(keys: readonly Key[], reason: string): Partial<Record<Key, Absent>> {
  return Object.fromEntries(keys.map((key) => [key, { reason }]));
}

interface Changed {
  readonly id: string;
  /** Snapshots from before and after the change. */
  readonly before: string;
  readonly after: string;
}

type Both = Readonly<Record<"large" | "small", Changed>>;

/** A sandbox whose files exist, small, in one snapshot, and are overwritten and written back in the next. */
async function changed(server: BenchServer, folders: number, files: number): Promise<Changed> {
  const { id } = await server.create();
  const write = (bytes: number): Promise<string> =>
    server.sh(
      id,
      `i=0; while [ $i -lt ${folders} ]; do mkdir -p changed/$i && head -c ${files * bytes} /dev/urandom | split -d -a 4 -b ${bytes} - changed/$i/file- || exit 1; i=$((i + 1)); done; sync -f .`,
    );
  const snapshot = async (name: string): Promise<string> => (await server.call("createSnapshot", { sandbox: id, name })).id;
  await write(16);
  const before = await snapshot("before");
  await write(FILE_BYTES);
  const found = Number(await server.sh(id, `find changed -type f -size +${FILE_BYTES - 1}c | wc -l`));
  if (found !== folders * files) throw new Error(`${found} files were changed instead of ${folders * files}`);
  // The snapshot has to freeze a running process.
  await server.call("runCommand", { sandbox: id, command: ["sleep", "3600"], background: true });
  return { id, before, after: await snapshot("after") };
}

function growth({ large, small }: Both, { quick }: Settings, sample: (sandbox: Changed) => Sample): Promise<Measured> {
  return compare({
    pairs: pairCount(quick),
    sides: [
      [LARGE, sample(large)],
      [SMALL, sample(small)],
    ],
  });
}

async function snapshots(server: BenchServer, both: Both, settings: Settings): Promise<Partial<Record<Key, Measured>>> {
  const frozen = new Map<string, number[]>([
    [both.large.id, []],
    [both.small.id, []],
  ]);
  const sample =
    ({ id: sandbox }: Changed): Sample =>
    async () => {
      let snapshot = "";
      const ms = await timed(async () => {
        const taken = await server.call("createSnapshot", { sandbox });
        snapshot = taken.id;
        frozen.get(sandbox)?.push(taken.frozenMs);
      });
      await server.call("removeSnapshot", { sandbox, snapshot });
      return ms;
    };
  const measured = await growth(both, settings, sample);
  const stood = (sandbox: Changed) => series(frozen.get(sandbox.id) ?? []);
  const raw = { [LARGE]: stood(both.large), [SMALL]: stood(both.small) };
  return { snapshot_growth: measured, snapshot_frozen_ms: { figure: stood(both.large).median, raw } };
}

/** Throws the change away; bringing it back for the next round is not timed. */
async function rollBack(server: BenchServer, { id: sandbox, before, after }: Changed): Promise<number> {
  const ms = await timed(() => server.call("rollback", { sandbox, snapshot: before }));
  await server.call("rollback", { sandbox, snapshot: after });
  return ms;
}
