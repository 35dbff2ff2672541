/** Creating a sandbox against the peers that start a process behind walls; running in one against a plain spawn. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { compare, pairCount, rested, round, series, timed } from "./measure.ts";
import { bwrapCommand, find, INSTALL } from "./peers.ts";
import type { Absent, Group, Measured, Series, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

const PAIRS = 100;
const TRUE = "/bin/true";

export const createGroup: Group = {
  keys: ["create_vs_bwrap", "create_vs_runc", "exec_vs_spawn"],
  async measure(settings) {
    return BenchServer.with(async (server) => {
      const { wanted, progress } = settings;
      const outcomes: Record<string, Measured | Absent> = {};
      for (const [key, measure] of [
        ["create_vs_bwrap", againstBwrap],
        ["create_vs_runc", againstRunc],
        ["exec_vs_spawn", againstSpawn],
      ] as const) {
        if (!wanted.has(key)) continue;
        progress(key);
        outcomes[key] = await measure(server, settings);
      }
      return outcomes;
    });
  },
};

async function withSpawner(spawner: Spawner, work: () => Promise<Measured>): Promise<Measured> {
  try {
    return await work();
  } finally {
    await spawner.close();
  }
}

async function againstBwrap(server: BenchServer, { quick }: Settings): Promise<Measured | Absent> {
  const command = bwrapCommand();
  if (command === undefined) return { reason: `bwrap is not installed; ${INSTALL}` };
  const spawner = new Spawner();
  const measured = await withSpawner(spawner, () =>
    compare({
      pairs: pairCount(quick, PAIRS),
      worked: server.worked,
      sides: [
        ["vivarium", () => server.createAndRemove()],
        ["bwrap", () => spawner.run(command)],
      ],
    }),
  );
  const unprepared = await withoutSpare(server, pairCount(quick));
  const unkept = await BenchServer.with((bare) => withoutSpare(bare, pairCount(quick)), { spares: false });
  const ratio = ({ median }: Series): number => round(median / (measured.raw["bwrap"]?.median ?? Number.NaN));
  return {
    ...measured,
    raw: { ...measured.raw, "vivarium without spare": unprepared, "nothing ahead": unkept },
    more: { ...measured.more, without_spare: ratio(unprepared), nothing_ahead: ratio(unkept) },
  };
}

/** The server makes a sandbox ahead in the background; this is what a create takes that no such sandbox fits. */
async function withoutSpare(server: BenchServer, count: number): Promise<Series> {
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) samples.push(await rested(() => server.createAndRemove(undefined, { ahead: false })));
  return series(samples);
}

async function againstRunc(server: BenchServer, { quick }: Settings): Promise<Measured | Absent> {
  const runc = find("runc");
  if (runc === undefined) return { reason: `runc is not installed; ${INSTALL}` };
  if (process.getuid?.() !== 0) return { reason: "runc needs root for an overlay of /" };
  const place = join(server.place, "runc");
  const bundle = makeBundle(runc, place);
  const command = [runc, "--root", join(place, "state"), "run", "--bundle", bundle, `viv-bench-${process.pid}`];
  const spawner = new Spawner(overlayed(place, bundle));
  return withSpawner(spawner, () =>
    compare({
      pairs: pairCount(quick, PAIRS),
      sides: [
        ["vivarium", () => server.createAndRemove()],
        ["runc", () => spawner.run(command)],
      ],
    }),
  );
}

/** What `runc spec` gives, with /bin/true for the shell and a writable root. */
export function makeBundle(runc: string, place: string, args: readonly string[] = [TRUE]): string {
  const bundle = join(place, "bundle");
  for (const folder of ["bundle/rootfs", "layers", "state"]) mkdirSync(join(place, folder), { recursive: true });
  execFileSync(runc, ["spec", "--bundle", bundle], { stdio: "ignore" });
  const file = join(bundle, "config.json");
  const spec = JSON.parse(readFileSync(file, "utf8")) as Record<string, Record<string, unknown>>;
  const changed = {
    ...spec,
    process: { ...spec["process"], terminal: false, args },
    root: { path: "rootfs", readonly: false },
    linux: { ...spec["linux"], cgroupsPath: `/viv-bench-${process.pid}` },
  };
  writeFileSync(file, JSON.stringify(changed));
  return bundle;
}

/**
 * Mounts the overlay in a mount namespace that ends with the spawner. The layers lie on a tmpfs because the kernel
 * refuses an upper folder that lies within a lower one.
 */
export function overlayed(place: string, bundle: string): string[] {
  const script = `
    set -e
    mount -t tmpfs tmpfs "$1/layers"
    mkdir "$1/layers/upper" "$1/layers/work"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$1/layers/upper,workdir=$1/layers/work" "$2/rootfs"
    shift 2
    exec "$@"`;
  return ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh", place, bundle];
}

async function againstSpawn(server: BenchServer, { quick }: Settings): Promise<Measured> {
  const { id: sandbox } = await server.create();
  const inside = () =>
    timed(async () => {
      const { end } = await server.call("runCommand", { sandbox, command: [TRUE] });
      if (end?.exitCode !== 0) throw new Error("/bin/true failed inside");
    });
  const spawner = new Spawner();
  const measured = await withSpawner(spawner, () =>
    compare({
      pairs: pairCount(quick, PAIRS * 2),
      quietMs: 0,
      worked: server.worked,
      sides: [
        ["vivarium", inside],
        ["spawn", () => spawner.run([TRUE], { stdio: "pipe" })],
      ],
    }),
  );
  await server.remove(sandbox);
  return measured;
}
