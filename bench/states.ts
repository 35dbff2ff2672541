/** Snapshot, rollback and fork of an ordinary sandbox, against bwrap, which keeps no state at all. */
import { compare, pairCount, timed, type Sample } from "./measure.ts";
import { bwrapCommand, INSTALL } from "./peers.ts";
import type { Group, Key, Measured, Absent } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

/** Ten files, and a process that waits. */
const CHANGE = "for i in 0 1 2 3 4 5 6 7 8 9; do head -c 2000 /dev/urandom > changed-$i || exit 1; done";
const WAITING = ["sleep", "3600"];

export const stateGroup: Group = {
  keys: ["snapshot_vs_bwrap", "rollback_vs_bwrap", "fork_vs_bwrap"],
  async measure({ wanted, progress, quick }) {
    const bwrap = bwrapCommand();
    if (bwrap === undefined) return Object.fromEntries([...wanted].map((key) => [key, { reason: `bwrap is not installed; ${INSTALL}` }]));
    return BenchServer.with(async (server) => {
      const outcomes: Partial<Record<Key, Measured | Absent>> = {};
      for (const [key, make] of [
        ["snapshot_vs_bwrap", snapshots],
        ["rollback_vs_bwrap", rollbacks],
        ["fork_vs_bwrap", forks],
      ] as const) {
        if (!wanted.has(key)) continue;
        progress(key);
        const spawner = new Spawner();
        try {
          const { id } = await server.create();
          const own = await make(server, id);
          outcomes[key] = await compare({
            pairs: pairCount(quick),
            worked: server.worked,
            sides: [
              ["vivarium", own],
              ["bwrap", () => spawner.run(bwrap)],
            ],
          });
          await server.remove(id);
        } finally {
          await spawner.close();
        }
      }
      return outcomes;
    });
  },
};

async function change(server: BenchServer, sandbox: string): Promise<void> {
  await server.sh(sandbox, CHANGE);
  await server.call("runCommand", { sandbox, command: WAITING, background: true });
}

async function snapshots(server: BenchServer, sandbox: string): Promise<Sample> {
  await change(server, sandbox);
  return async () => {
    let snapshot = "";
    const ms = await timed(async () => void (snapshot = (await server.call("createSnapshot", { sandbox })).id));
    await server.call("removeSnapshot", { sandbox, snapshot });
    return ms;
  };
}

/** Each time there are changes and a process to throw away. */
async function rollbacks(server: BenchServer, sandbox: string): Promise<Sample> {
  const { id: snapshot } = await server.call("createSnapshot", { sandbox });
  return async () => {
    await change(server, sandbox);
    return timed(() => server.call("rollback", { sandbox, snapshot }));
  };
}

async function forks(server: BenchServer, sandbox: string): Promise<Sample> {
  await change(server, sandbox);
  return () => server.forkAndRemove(sandbox);
}
