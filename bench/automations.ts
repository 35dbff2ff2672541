/** Automations: from a saved file to the sandbox of its task, and what many of them cost while they wait. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { InputOf, OutputOf } from "../src/base/schema/contracts.ts";
import { compare, pairCount, round, series } from "./measure.ts";
import { hostFamilyOf, ifThere } from "./processes.ts";
import type { Group, Key, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";

const PAIRS = 40;
const MANY = 50;
const WINDOW_MS = 30_000;
const QUICK_WINDOW_MS = 10_000;
const SETTLE_MS = 3_000;
const LOOKS = 5;
const HOUR_MS = 3_600_000;
const TICK_MS = 10;
/** How often an automation looks by itself, where the config says nothing: docs/AUTOMATION.md. */
const LOOKS_PER_HOUR = { check: 1, remote: 6 } as const;

type Spec = InputOf<"addAutomation">["spec"];

export const automationsGroup: Group = {
  keys: ["trigger_ms", "idle_cost"],
  async measure(settings) {
    const outcomes: Partial<Record<Key, Measured>> = {};
    for (const [key, measure] of [
      ["trigger_ms", trigger],
      ["idle_cost", idle],
    ] as const) {
      if (!settings.wanted.has(key)) continue;
      settings.progress(key);
      outcomes[key] = await BenchServer.with((server) => measure(server, settings));
    }
    return outcomes;
  },
};

/** Its line says what time it is inside the sandbox; the clock is that of the machine. */
async function trigger(server: BenchServer, { quick }: Settings): Promise<Measured> {
  const { project } = server;
  const spec: Spec = { when: { on: "files", paths: ["saved.txt"] }, batch: 0, run: ["touch /tmp/seen; date +%s%N"], checks: [] };
  await server.call("addAutomation", { project, name: "saved", spec });
  const stop = new AbortController();
  const ends = (await server.events(stop.signal))[Symbol.asyncIterator]();
  let saves = 0;
  const save = async (): Promise<number> => {
    const saved = Date.now();
    writeFileSync(join(project, "saved.txt"), String((saves += 1)));
    const firing = await ended(server, ends);
    const { attempts } = await server.call("inspectExperiment", { experiment: firing.experiment ?? "" });
    const inside = Number(attempts[0]?.output.trim()) / 1e6;
    if (!Number.isFinite(inside) || firing.count !== 1) throw new Error(`the firing is ${firing.state}: ${firing.reason ?? ""}`);
    return inside - saved;
  };
  try {
    return await compare({
      pairs: pairCount(quick, PAIRS),
      sides: [
        ["trigger", save],
        ["create", () => server.createAndRemove()],
      ],
    });
  } finally {
    stop.abort();
  }
}

/** The next firing that has nothing left to do. */
async function ended(server: BenchServer, events: AsyncIterator<{ type: string; data: object }>): Promise<OutputOf<"inspectFiring">> {
  for (let next = await events.next(); next.done !== true; next = await events.next()) {
    const { type, data } = next.value;
    if (!["firing.done", "firing.failed", "firing.waiting"].includes(type)) continue;
    const id = "firing" in data && typeof data.firing === "string" ? data.firing : "";
    return server.call("inspectFiring", { firing: id });
  }
  throw new Error("the stream of events ended");
}

/**
 * Processor time of server and helper in a window, without automations and with fifty, scaled to an hour. What looks more rarely than the
 * window is long is measured look by look, and added as often as it comes in an hour.
 */
async function idle(server: BenchServer, { quick }: Settings): Promise<Measured> {
  const windowMs = quick ? QUICK_WINDOW_MS : WINDOW_MS;
  const without = await spent(server, windowMs);
  const kinds = specs(server);
  for (const [index, spec] of kinds.entries())
    await server.call("addAutomation", { project: server.project, name: `waits-${index}`, spec });
  const waiting = await spent(server, windowMs);
  const { automations } = await server.call("listAutomations", {});
  const ill = automations.find(({ state, reason }) => state !== "active" || reason !== null);
  if (ill !== undefined || automations.length !== MANY) throw new Error(`not all wait: ${ill?.name ?? ""} ${ill?.reason ?? ""}`);
  const rare = { check: await lookMs(server, kinds, "check"), remote: await lookMs(server, kinds, "remote") };
  const timers = ((waiting - without) * HOUR_MS) / windowMs / 1000;
  const looks = (["check", "remote"] as const).reduce(
    (sum, kind) => sum + (rare[kind] / 1000) * LOOKS_PER_HOUR[kind] * kinds.filter((spec) => isKind(spec, kind)).length,
    0,
  );
  return {
    figure: round(Math.max(0, timers) + looks),
    raw: { without: series([without]), waiting: series([waiting]), "one check": series([rare.check]), "one remote": series([rare.remote]) },
    more: {
      timers_s: round(timers),
      looks_s: round(looks),
      window_s: windowMs / 1000,
      resolution_s: round((HOUR_MS / windowMs) * (TICK_MS / 1000)),
    },
  };
}

/** Of every kind that waits, most of those that people have most. */
function specs(server: BenchServer): Spec[] {
  const remote = join(server.place, "remote.git");
  execFileSync("git", ["init", "-q", "--bare", "-b", "main", remote]);
  for (const line of ["commit -q --allow-empty -m first", "branch -M main", `push -q ${remote} main`])
    execFileSync("git", ["-c", "user.name=bench", "-c", "user.email=bench@localhost", ...line.split(" ")], { cwd: server.project });
  const logs = join(server.place, "logs");
  mkdirSync(logs);
  writeFileSync(join(logs, "app.log"), "");
  const kinds: readonly (readonly [count: number, when: NonNullable<Spec["when"]>])[] = [
    [12, { on: "files", paths: ["*"] }],
    [12, { on: "schedule", cron: "0 3 * * *", timezone: "Europe/Berlin" }],
    [8, { on: "webhook" }],
    [6, { on: "commit", branch: "main" }],
    [4, { on: "commit", branch: "main", remote }],
    [4, { on: "log", file: join(logs, "app.log"), line: "*ERROR*" }],
    [4, { on: "check", command: "true" }],
  ];
  return kinds.flatMap(([count, when]) => Array.from({ length: count }, () => ({ when, run: ["touch never"], checks: [] })));
}

function isKind({ when }: Spec, kind: keyof typeof LOOKS_PER_HOUR): boolean {
  return kind === "check" ? when?.on === "check" : when?.on === "commit" && when.remote !== undefined;
}

/** Processor time of one look, as the automation does it by itself. */
async function lookMs(server: BenchServer, kinds: readonly Spec[], kind: keyof typeof LOOKS_PER_HOUR): Promise<number> {
  const name = `waits-${kinds.findIndex((spec) => isKind(spec, kind))}`;
  const before = processorMs(server);
  for (let look = 0; look < LOOKS; look += 1) await server.call("testAutomation", { automation: name });
  await delay(SETTLE_MS);
  return (processorMs(server) - before) / LOOKS;
}

async function spent(server: BenchServer, windowMs: number): Promise<number> {
  await delay(SETTLE_MS);
  const before = processorMs(server);
  await delay(windowMs);
  return processorMs(server) - before;
}

/** Of all threads that live, by the scheduler's own count; of processes that came and went, in hundredths of a second. */
function processorMs(server: BenchServer): number {
  return hostFamilyOf(server.pid).reduce((sum, pid) => sum + threadsMs(pid) + childrenMs(pid), 0);
}

function threadsMs(pid: number): number {
  const tasks = ifThere(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  const nanoseconds = tasks.map((task) =>
    Number(ifThere(() => readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8"))?.split(" ")[0] ?? 0),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

function childrenMs(pid: number): number {
  const stat = ifThere(() => readFileSync(`/proc/${pid}/stat`, "utf8")) ?? "";
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) * TICK_MS;
}
