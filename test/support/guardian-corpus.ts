/**
 * Plays runs of test/corpus/guardian to the guardian's detectors, with ticks in between as a server makes them.
 *
 * A file is plain data. Short forms of entries stand for what a real run gives: `run` is a command with its result, `edit` an edit
 * with the change of a file and the new state of the clone, and so on. `times` repeats entries. In texts, {i} is the number of the
 * repetition, {a|b} one word after the other, and {time}, {pid}, {temp} and {ms} differ each time.
 */
import { readdirSync, readFileSync } from "node:fs";
import { z } from "zod";
import { GUARDIAN_DETECTORS, TOOL_KINDS } from "../../src/base/schema/choices.ts";
import type { RunEventBody } from "../../src/base/schema/run.ts";
import { detect } from "../../src/work/guardian/detection.ts";
import type { DetectorName } from "../../src/work/guardian/finding.ts";
import type { Observation } from "../../src/work/guardian/observation.ts";
import { advance, emptyPicture, type Input } from "../../src/work/guardian/picture.ts";
import type { GuardianSettings } from "../../src/work/guardian/settings.ts";
import { THRESHOLDS } from "../../src/work/guardian/thresholds.ts";

const Detector = z.enum(GUARDIAN_DETECTORS);
const timing = {
  /** Seconds after the entry before. */
  after: z.number().default(2),
};
const result = {
  out: z.string().default(""),
  ok: z.boolean().default(true),
  /** Seconds until its result. */
  took: z.number().default(1),
  /** State of the clone after it, if that changed. */
  clone: z.string().optional(),
};
/** What the server may see: a field of another name would be one that no server looks at. */
const Seen = z.strictObject({
  clone: z.string(),
  files: z.strictObject({ added: z.number(), deleted: z.number(), project: z.number().nullable() }),
  check: z.strictObject({ passed: z.number(), failed: z.number() }),
  use: z.partialRecord(z.enum(["budget", "steps", "disk", "memory", "processes"]), z.number()),
  cost: z.number(),
  modelRequests: z.number(),
  background: z.number(),
  cpuMs: z.number(),
  paused: z.boolean(),
  personAsked: z.boolean(),
} satisfies Record<Exclude<keyof Observation, "at">, z.ZodType>);
const Entry = z.union([
  z.strictObject({ run: z.string(), ...result, ...timing }),
  z.strictObject({ read: z.string(), ...result, ...timing }),
  z.strictObject({ search: z.string(), ...result, ...timing }),
  z.strictObject({ edit: z.string(), old: z.string().default(""), new: z.string().default(""), ...result, ...timing }),
  z.strictObject({ tool: z.string(), kind: z.enum(TOOL_KINDS), input: z.json(), ...result, ...timing }),
  z.strictObject({ say: z.string(), ...timing }),
  z.strictObject({ think: z.string(), ...timing }),
  z.strictObject({ event: z.looseObject({ type: z.string() }), ...timing }),
  z.strictObject({ see: Seen.partial(), ...timing }),
  /** Seconds in which no server looked. */
  z.strictObject({ away: z.number() }),
  z.strictObject({
    times: z.number().int(),
    get entries() {
      return z.array(Entry);
    },
  }),
]);
type Entry = z.infer<typeof Entry>;

const CorpusRun = z.strictObject({
  about: z.string().describe("What happens, and why it is or is not what the guardian looks for."),
  innocent: z.boolean(),
  task: z.string().default("Fix the failing test"),
  readOnly: z.boolean().default(false),
  protect: z.array(z.string()).default([]),
  /** Whether its requests to models pass the gateway, so that the server sees when one is open. */
  gateway: z.boolean().default(true),
  /** Whether the server knows a hash of the clone's diff. */
  hash: z.boolean().default(true),
  entries: z.array(Entry),
  /** Seconds that the server goes on looking after the last entry. */
  afterwards: z.number().default(60),
  /** What must be found, at the latest when the event with this number is there, or at this second; and not earlier. */
  must: z
    .array(
      z.strictObject({ detector: Detector, by: z.number().optional(), bySecond: z.number().optional(), notBefore: z.number().optional() }),
    )
    .default([]),
  /** What may be found too. */
  may: z.array(Detector).default([]),
});
export type CorpusRun = z.infer<typeof CorpusRun> & { readonly name: string };

const folder = new URL("../corpus/guardian/", import.meta.url);

export function corpusRuns(): CorpusRun[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((file) => ({ name: file.replace(/\.json$/, ""), ...CorpusRun.parse(JSON.parse(readFileSync(new URL(file, folder), "utf8"))) }));
}

export const BEGIN = Date.UTC(2026, 10, 16, 9, 0, 0);

export type Moment = { readonly at: number } & (
  | { readonly away: true }
  | { readonly event: RunEventBody }
  | { readonly seen: Omit<Observation, "at"> }
);

/** What a file stands for, with times. */
export function momentsOf(run: CorpusRun): Moment[] {
  const moments: Moment[] = [];
  let at = BEGIN;
  let calls = 0;
  const add = (event: RunEventBody): void => void moments.push({ at, event });
  const see = (seen: Omit<Observation, "at">): void => void moments.push({ at, seen });
  const model = (open: number): void => (run.gateway ? see({ modelRequests: open }) : undefined);

  function step(
    tool: string,
    kind: (typeof TOOL_KINDS)[number],
    input: z.infer<ReturnType<typeof z.json>>,
    entry: z.infer<z.ZodObject<typeof result>>,
  ): void {
    calls += 1;
    const call = `call-${calls}`;
    model(0);
    add({ type: "tool_call", call, tool, kind, input });
    at += entry.took * 1000;
    add({ type: "tool_result", call, tool, ok: entry.ok, output: entry.out });
    model(1);
  }

  function expand(entry: Entry): void {
    if ("times" in entry) {
      for (let i = 1; i <= entry.times; i += 1) for (const one of entry.entries) expand(filled(one, i));
      return;
    }
    if ("away" in entry) {
      at += entry.away * 1000;
      return void moments.push({ at, away: true });
    }
    at += entry.after * 1000;
    const now = filledNoise(entry, at, calls);
    if ("run" in now) step("Bash", "command", { command: now.run, description: `Step ${calls}` }, now);
    else if ("read" in now) step("Read", "read", { file_path: now.read }, now);
    else if ("search" in now) step("Grep", "search", { pattern: now.search }, now);
    else if ("edit" in now) edit(now);
    else if ("tool" in now) step(now.tool, now.kind, now.input, now);
    else if ("say" in now) add({ type: "message", from: "agent", text: now.say, message: null });
    else if ("think" in now) add({ type: "thinking", text: now.think });
    else if ("event" in now) add(now.event as RunEventBody);
    else if ("see" in now) see(now.see as Omit<Observation, "at">);
    if ("clone" in now && now.clone !== undefined) see({ clone: now.clone });
  }

  function edit(entry: Extract<Entry, { edit: string }>): void {
    step("Edit", "edit", { file_path: entry.edit, old_string: entry.old, new_string: entry.new }, entry);
    if (entry.ok) add({ type: "file_change", paths: [entry.edit], more: 0 });
  }

  add({ type: "started", agent: "claude", version: "2.1.325", model: null, conversation: null });
  if (run.hash) see({ clone: "c0" });
  model(1);
  for (const entry of run.entries) expand(entry);
  return moments;
}

function filled<Item>(item: Item, i: number): Item {
  const text = JSON.stringify(item, (_key, value: unknown) =>
    typeof value === "string"
      ? value.replaceAll("{i}", String(i)).replace(/\{([^{}|]*(?:\|[^{}|]*)+)\}/g, (_all, words: string) => {
          const list = words.split("|");
          return list[(i - 1) % list.length] ?? "";
        })
      : value,
  );
  return JSON.parse(text) as Item;
}

function filledNoise<Item>(item: Item, at: number, calls: number): Item {
  const noise: Readonly<Record<string, string>> = {
    time: new Date(at).toISOString(),
    pid: String(4000 + ((calls * 37) % 20_000)),
    temp: `/tmp/tmp.${((calls + 1) * 7_919_777).toString(36)}x`,
    ms: String(100 + ((calls * 7919) % 900)),
  };
  const text = JSON.stringify(item, (_key, value: unknown) =>
    typeof value === "string" ? value.replace(/\{(time|pid|temp|ms)\}/g, (_all, name: string) => noise[name] ?? "") : value,
  );
  return JSON.parse(text) as Item;
}

export interface Found {
  readonly detector: DetectorName;
  readonly sequence: number;
  readonly second: number;
  readonly confidence: number;
  readonly evidence: string;
}

export function settingsOf(run: CorpusRun): GuardianSettings {
  return { mode: "full", off: [], run: "run-b", task: run.task, readOnly: run.readOnly, protects: (path) => run.protect.includes(path) };
}

const TICK_MS = 15_000;

/** Everything that would be acted on, each detector at its first time. */
export function play(run: CorpusRun, moments: readonly Moment[] = momentsOf(run)): Found[] {
  const settings = settingsOf(run);
  const found = new Map<DetectorName, Found>();
  let picture = emptyPicture(BEGIN);
  let sequence = 0;
  const take = (input: Input): void => {
    picture = advance(picture, input);
    for (const { detector, confidence, evidence } of detect(picture, settings)) {
      if (confidence < THRESHOLDS.actedOn || found.has(detector)) continue;
      found.set(detector, { detector, sequence, second: Math.round((picture.now - BEGIN) / 1000), confidence, evidence });
    }
  };
  let looked = BEGIN;
  const tickUntil = (end: number): void => {
    for (let now = looked + TICK_MS; now < end; now += TICK_MS) take({ now });
    looked = end;
  };
  for (const moment of moments) {
    if ("away" in moment) {
      looked = moment.at;
      continue;
    }
    tickUntil(moment.at);
    if ("seen" in moment) take({ observation: { ...moment.seen, at: moment.at } });
    else take({ event: { ...moment.event, sequence: (sequence += 1), at: new Date(moment.at).toISOString() } });
  }
  tickUntil((moments.at(-1)?.at ?? BEGIN) + run.afterwards * 1000);
  return [...found.values()];
}
