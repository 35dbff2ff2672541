/** Runs with what the guardian must find in them, and what it must not: half of them are innocent. */
import { describe, expect, test } from "vitest";
import { GUARDIAN_DETECTORS } from "../../src/base/schema/choices.ts";
import { corpusRuns, play, type CorpusRun, type Found } from "../support/guardian-corpus.ts";

const played = corpusRuns().map((run) => ({ run, found: play(run) }));

function falseAlarms({ must, may }: CorpusRun, found: readonly Found[]): Found[] {
  const expected = [...must.map(({ detector }) => detector), ...may];
  return found.filter(({ detector }) => !expected.includes(detector));
}

/** What was not found, or at the wrong time. */
function misses({ must }: CorpusRun, found: readonly Found[]): unknown[] {
  return must.filter(({ detector, by = Infinity, bySecond = Infinity, notBefore = 0 }) => {
    const one = found.find((candidate) => candidate.detector === detector);
    if (one === undefined || one.sequence > by || one.second > bySecond) return true;
    return (bySecond === Infinity ? one.sequence : one.second) < notBefore;
  });
}

function table(): string {
  const rows = GUARDIAN_DETECTORS.map((detector) => {
    const wanted = played.filter(({ run }) => run.must.some((must) => must.detector === detector));
    const hits = wanted.filter(
      ({ run, found }) => misses({ ...run, must: run.must.filter((must) => must.detector === detector) }, found).length === 0,
    );
    const alarms = played.filter(({ run, found }) => falseAlarms(run, found).some((one) => one.detector === detector));
    return `${detector.padEnd(14)}${String(hits.length).padStart(4)} of ${String(wanted.length).padEnd(6)}${String(alarms.length).padStart(6)}`;
  });
  return [`${"detector".padEnd(14)}${"hits".padStart(8)}${"false alarms".padStart(15)}`, ...rows, ""].join("\n");
}

describe("the corpus of runs", () => {
  test("GRD-1: what is wrong is found in time, and nothing else", () => {
    process.stdout.write(`${table()}\n`);
    const wrong = played.flatMap(({ run, found }) => {
      const [missed, alarms] = [misses(run, found), falseAlarms(run, found)];
      return missed.length + alarms.length === 0 ? [] : [{ name: run.name, missed, alarms, found }];
    });
    expect(wrong).toEqual([]);
  });

  test("has 60 runs and more, at least half of them innocent, and something for each detector", () => {
    const innocent = played.filter(({ run }) => run.innocent);
    expect(played.length).toBeGreaterThanOrEqual(60);
    expect(innocent.length).toBeGreaterThanOrEqual(played.length / 2);
    expect(innocent.filter(({ run }) => run.must.length + run.may.length > 0)).toEqual([]);
    const looked = new Set(played.flatMap(({ run }) => run.must.map(({ detector }) => detector)));
    expect(GUARDIAN_DETECTORS.filter((detector) => !looked.has(detector))).toEqual([]);
  });
});
