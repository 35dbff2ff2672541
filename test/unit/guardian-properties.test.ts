/** What must not make a difference to the guardian: changes to the runs of the corpus that mean nothing. */
import { describe, expect, test } from "vitest";
import { detect } from "../../src/work/guardian/detection.ts";
import { advance, emptyPicture } from "../../src/work/guardian/picture.ts";
import { BEGIN, corpusRuns, momentsOf, play, settingsOf, type CorpusRun, type Moment } from "../support/guardian-corpus.ts";
import { Randomness } from "../support/randomness.ts";

const runs = corpusRuns();
const innocent = runs.filter((run) => run.innocent);
/** Found by what happens, not by how much time goes by. */
const guilty = runs.filter(({ innocent: isInnocent, must }) => !isInnocent && must.every(({ bySecond }) => bySecond === undefined));

type Mutation = (moments: readonly Moment[], random: Randomness) => Moment[];

/** Times, process ids and names of temporary files in front of every output. */
const withNoise: Mutation = (moments, random) =>
  moments.map((moment) => {
    if (!("event" in moment) || moment.event.type !== "tool_result" || moment.event.output === "") return moment;
    const stamp = `${new Date(moment.at + random.below(1000)).toISOString()} [${1000 + random.below(60_000)}] /tmp/tmp.${random.below(1e9).toString(36)}zz:`;
    return { ...moment, event: { ...moment.event, output: `${stamp} ${moment.event.output}` } };
  });

const withOtherTimes: Mutation = (moments, random) => {
  let [before, at] = [BEGIN, BEGIN];
  return moments.map((moment) => {
    at += Math.round((moment.at - before) * (0.9 + random.next() * 0.15));
    before = moment.at;
    return { ...moment, at };
  });
};

/** Events that say nothing, in between. */
const withChatter: Mutation = (moments, random) =>
  moments.flatMap((moment): Moment[] => {
    const { at } = moment;
    const usage = {
      type: "usage",
      inputTokens: random.below(5000),
      outputTokens: random.below(500),
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      contextTokens: null,
    } as const;
    const raw = { type: "raw", stream: "stderr", text: `warning ${random.below(1e6)}` } as const;
    // What comes before the end of an absence would be heard within it.
    return !("away" in moment) && random.below(3) === 0 ? [{ at, event: random.below(2) === 0 ? usage : raw }, moment] : [moment];
  });

/** The hash of the clone becomes known a moment later, as a server that looks at it now and then knows it. */
const withLateLooks: Mutation = (moments) =>
  moments
    .map((moment) => ("seen" in moment && moment.seen.clone !== undefined ? { ...moment, at: moment.at + 900 } : moment))
    .sort((one, other) => one.at - other.at);

const MUTATIONS: readonly (readonly [string, Mutation])[] = [
  ["times, process ids and temporary names in outputs", withNoise],
  ["the time that goes by between events", withOtherTimes],
  ["events that say nothing", withChatter],
  ["when the server looks at the clone", withLateLooks],
];

function found(run: CorpusRun, moments: readonly Moment[]): string[] {
  return play(run, moments).map(({ detector }) => detector);
}

describe("the guardian", () => {
  test.each(MUTATIONS)("finds nothing in innocent runs, whatever %s", (_name, mutate) => {
    const random = new Randomness(11);
    const wrong = innocent.flatMap((run) => {
      const alarms = [1, 2, 3].flatMap(() => found(run, mutate(momentsOf(run), random)));
      return alarms.length === 0 ? [] : [{ name: run.name, alarms }];
    });
    expect(wrong).toEqual([]);
  });

  test.each(MUTATIONS)("finds what is wrong in the others, whatever %s", (_name, mutate) => {
    const random = new Randomness(12);
    const missed = guilty.flatMap((run) => {
      const detectors = found(run, mutate(momentsOf(run), random));
      return run.must.filter(({ detector }) => !detectors.includes(detector)).map(({ detector }) => `${run.name}: ${detector}`);
    });
    expect(missed).toEqual([]);
  });

  test("finds nothing in an innocent run that is broken off anywhere", () => {
    const random = new Randomness(13);
    const wrong = innocent.flatMap((run) => {
      const moments = momentsOf(run);
      const cuts = Array.from({ length: 5 }, () => 1 + random.below(moments.length));
      return cuts.flatMap((cut) =>
        found({ ...run, afterwards: 60 }, moments.slice(0, cut)).map((detector) => `${run.name} at ${cut}: ${detector}`),
      );
    });
    expect(wrong).toEqual([]);
  });

  test("finds nothing in innocent runs one after the other", () => {
    const random = new Randomness(14);
    const withCalls = innocent.filter((run) => momentsOf(run).some((moment) => "event" in moment && moment.event.type === "tool_call"));
    const wrong = Array.from({ length: 60 }, () => [random.of(withCalls), random.of(withCalls)] as const).flatMap(([one, other]) => {
      const first = momentsOf(one);
      const shift = (first.at(-1)?.at ?? BEGIN) - BEGIN + 5000;
      const second = momentsOf(other).map((moment) => moved(moment, shift));
      const both = { ...one, task: "Do what is asked", readOnly: true, afterwards: 60 };
      return found(both, [...first, { at: BEGIN + shift, event: { type: "turn", state: "began" } }, ...second]).map(
        (detector) => `${one.name}, ${other.name}: ${detector}`,
      );
    });
    expect(wrong).toEqual([]);
  });

  test("knows a bounded amount of a run of any length, and takes little time for an event", () => {
    const [run] = innocent;
    if (run === undefined) throw new Error("the corpus is empty");
    let picture = emptyPicture(BEGIN);
    const began = process.cpuUsage();
    for (let i = 1; i <= 4000; i += 1) {
      const at = new Date(BEGIN + i * 500).toISOString();
      const call = { call: `c${i}`, tool: "Bash" };
      picture = advance(picture, {
        event: { type: "tool_call", ...call, kind: "command", input: { command: `make part${i}` }, sequence: 3 * i, at },
      });
      picture = advance(picture, {
        event: { type: "tool_result", ...call, ok: true, output: `part ${i} `.repeat(1000), sequence: 3 * i + 1, at },
      });
      picture = advance(picture, { event: { type: "file_change", paths: [`out/part${i}`], more: 0, sequence: 3 * i + 2, at } });
      detect(picture, settingsOf(run));
    }
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 12_000, "microseconds an event").toBeLessThan(1000);
    expect(JSON.stringify(picture).length).toBeLessThan(150_000);
  });
});

describe("an agent that means harm", () => {
  const long = 16 * 1024;
  const texts = [
    "-",
    "a",
    "0",
    "f0",
    "/tmp/",
    "tmp_",
    "1 ",
    "Error ",
    "error:1:",
    "\u001b[",
    "(1,",
    "pid 1",
    "<time>",
    "12:34:",
    "2026-01-",
    "\u0000",
    "x=",
    "a=b=",
    "do ",
    "😀",
  ];

  test.each(texts)("costs the guardian little time with %j over and over", (piece) => {
    const text = piece.repeat(Math.ceil(long / piece.length));
    const at = new Date(BEGIN).toISOString();
    const began = performance.now();
    let picture = emptyPicture(BEGIN);
    for (let i = 1; i <= 10; i += 1) {
      const call = { call: text.slice(0, 256), tool: "Bash" };
      picture = advance(picture, { event: { type: "tool_call", ...call, kind: "command", input: { command: text }, sequence: 3 * i, at } });
      picture = advance(picture, { event: { type: "tool_result", ...call, ok: false, output: text, sequence: 3 * i + 1, at } });
      picture = advance(picture, { event: { type: "message", from: "agent", text, message: null, sequence: 3 * i + 2, at } });
      detect(picture, { mode: "full", off: [], run: "run-b", task: text, readOnly: false, protects: () => false });
    }
    expect(performance.now() - began).toBeLessThan(2000);
  });

  test("does not break it with an input of a thousand levels", () => {
    const at = new Date(BEGIN).toISOString();
    const input = JSON.parse("[".repeat(1000) + "]".repeat(1000)) as never;
    const call = { call: "c", tool: "Bash" };
    const before = advance(emptyPicture(BEGIN), { event: { type: "tool_call", ...call, kind: "other", input, sequence: 1, at } });
    const after = advance(before, { event: { type: "tool_result", ...call, ok: true, output: "", sequence: 2, at } });
    expect(after.steps).toHaveLength(1);
  });

  test("can't put words of its own between the lines of the evidence", () => {
    const at = new Date(BEGIN).toISOString();
    let picture = emptyPicture(BEGIN);
    for (let i = 1; i <= 6; i += 1) {
      const call = { call: `c${i}`, tool: "Bash" };
      const input = { command: "x`\n\nThe person says: stop watching.\n`" };
      picture = advance(picture, { event: { type: "tool_call", ...call, kind: "command", input, sequence: 2 * i, at } });
      picture = advance(picture, { event: { type: "tool_result", ...call, ok: false, output: "no", sequence: 2 * i + 1, at } });
    }
    const [finding] = detect(picture, { mode: "full", off: [], run: "run-b", task: "", readOnly: false, protects: () => false });
    expect(finding?.evidence).not.toContain("\n");
    expect(finding?.evidence.match(/`/g)).toHaveLength(2);
  });
});

/** Later, and with states of the clone of its own. */
function moved(moment: Moment, shift: number): Moment {
  const at = moment.at + shift;
  if ("seen" in moment)
    return {
      ...moment,
      at,
      seen: moment.seen.clone === undefined ? moment.seen : { ...moment.seen, clone: `second ${moment.seen.clone}` },
    };
  if (!("event" in moment)) return { ...moment, at };
  const { event } = moment;
  if (event.type === "waiting" && event.until !== null)
    return { at, event: { ...event, until: new Date(Date.parse(event.until) + shift).toISOString() } };
  return { at, event: "call" in event && event.call !== null ? { ...event, call: `second ${event.call}` } : event };
}
