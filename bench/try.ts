/** What an experiment costs over the commands it runs, and how many attempts at once cost more than one. */
import { join } from "node:path";
import { compare, pairCount, rested, round, series, timed } from "./measure.ts";
import { publish } from "./published.ts";
import type { Group, Key, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

const CHECK = "true";
/** No attempt wins where nothing changed, which `viv try` says by its exit code. */
const NO_WINNER = 1;
/** Removals of the experiment before must not meet the next sample. */
const QUIET_MS = 300;

export const tryGroup: Group = {
  keys: ["try_overhead", "try_scaling"],
  async measure(settings) {
    return BenchServer.with(async (server) => {
      const outcomes: Partial<Record<Key, Measured>> = {};
      for (const [key, measure] of [
        ["try_overhead", overhead],
        ["try_scaling", scaling],
      ] as const) {
        if (!settings.wanted.has(key)) continue;
        settings.progress(key);
        outcomes[key] = await measure(server, settings);
      }
      return outcomes;
    });
  },
};

function attempts(count: number, command: string): { command: string }[] {
  return Array.from({ length: count }, () => ({ command }));
}

/** One experiment through the API, timed to the event of its end; what it leaves is removed outside the clock. */
async function experiment(server: BenchServer, count: number, command: string): Promise<number> {
  let id = "";
  const ms = await timed(async () => {
    const ended = await server.experiment({ project: server.project, attempts: attempts(count, command), checks: [CHECK] });
    if (ended.attempts.some(({ checked }) => checked?.passed !== true)) throw new Error(`an attempt failed: ${JSON.stringify(ended)}`);
    id = ended.id;
  });
  await server.call("removeExperiment", { experiment: id });
  return ms;
}

/** The same as a user types it. */
async function typed(viv: string, server: BenchServer, spawner: Spawner, command: string): Promise<number> {
  const words = [viv, "try", command, command, command, "--check", CHECK];
  const ms = await spawner.run(words, { cwd: server.project, env: server.env, okCodes: [NO_WINNER] });
  const { experiments } = await server.call("listExperiments", { project: server.project });
  const [newest] = experiments;
  if (newest?.state !== "done") throw new Error(`viv try ended with an experiment that is ${newest?.state ?? "not there"}`);
  await server.call("removeExperiment", { experiment: newest.id });
  return ms;
}

/** The figure is that of the command line; the API alone and attempts that change a file stand beside it. */
async function overhead(server: BenchServer, { quick }: Settings): Promise<Measured> {
  const viv = await publish(join(server.place, "package"));
  const spawner = new Spawner();
  const sides = {
    "viv try": () => typed(viv, server, spawner, "sleep 1"),
    plain: () => spawner.run(["/bin/sh", "-c", "sleep 1; true"], { cwd: server.project }),
    api: () => experiment(server, 3, "sleep 1"),
    "api, with a change": () => experiment(server, 3, "sleep 1; echo changed >README.md"),
    // Nothing but a start: how fast the machine is just now.
    "viv version": () => spawner.run([viv, "version"], { cwd: server.project }),
  };
  const names = Object.keys(sides) as (keyof typeof sides)[];
  const samples = new Map(names.map((name) => [name, [] as number[]]));
  let worked = 0;
  try {
    for (let index = -1; index < pairCount(quick); index += 1) {
      for (const name of index % 2 === 0 ? names : names.toReversed()) {
        const before = server.worked();
        const ms = await rested(sides[name], QUIET_MS);
        if (index < 0) continue;
        samples.get(name)?.push(ms);
        if (name === "api") worked += server.worked() - before;
      }
    }
  } finally {
    await spawner.close();
  }
  const raw = Object.fromEntries(names.map((name) => [name, series(samples.get(name) ?? [])]));
  const over = (name: keyof typeof sides): number =>
    round(((raw[name]?.median ?? Number.NaN) - (raw["plain"]?.median ?? Number.NaN)) / 1000);
  return {
    figure: over("viv try"),
    raw,
    more: { api: over("api"), api_with_change: over("api, with a change"), api_server_cpu_ms: round(worked / pairCount(quick)) },
  };
}

function scaling(server: BenchServer, { quick }: Settings): Promise<Measured> {
  return compare({
    pairs: pairCount(quick),
    warmUp: 1,
    quietMs: QUIET_MS,
    sides: [
      ["8 attempts", () => experiment(server, 8, "sleep 2")],
      ["1 attempt", () => experiment(server, 1, "sleep 2")],
    ],
  });
}
