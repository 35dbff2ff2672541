/** The guardian on what real agents said, as their adapters hear it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { RunEventBody } from "../../src/base/schema/run.ts";
import type { AgentStart } from "../../src/work/agents/adapter.ts";
import { Adapters } from "../../src/work/agents/adapters.ts";
import { BEGIN, play, type CorpusRun, type Moment } from "../support/guardian-corpus.ts";

const ADAPTERS = new Adapters({});
const START: AgentStart = {
  run: "run-b",
  task: { id: "msg-1", text: "go" },
  sandbox: "sbx-1",
  project: "/project",
  program: "agent",
  model: null,
  folder: "/var/lib/agent",
  models: {},
  gateway: "http://127.0.0.1:4097",
  policy: { text: "", lackedTools: [], rules: {} },
  conversation: null,
  context: null,
};

const RUN: CorpusRun = {
  name: "transcript",
  about: "What a real agent said.",
  innocent: true,
  task: "go",
  readOnly: false,
  protect: [],
  gateway: false,
  hash: true,
  entries: [],
  afterwards: 60,
  must: [],
  may: [],
};

interface Line {
  readonly at: number;
  readonly from: string;
  readonly line: string;
}

function heard(agent: string, file: URL): Moment[] {
  const session = ADAPTERS.of(agent)?.session(START);
  if (session === undefined) throw new Error(`there is no agent ${agent}`);
  const lines = readFileSync(file, "utf8").trim().split("\n");
  return lines.flatMap((text) => {
    const { at, from, line } = JSON.parse(text) as Line;
    const said = from === "agent" ? session.line(line) : from === "stderr" ? session.errorLine(line) : [];
    return said.flatMap((one) => ("event" in one ? [{ at: BEGIN + at, event: one.event }] : []));
  });
}

const transcripts = ADAPTERS.names.flatMap((agent) => {
  const folder = new URL(`../corpus/agents/${agent}/`, import.meta.url);
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".jsonl")) : [];
  return names.map((name) => ({ name: `${agent}/${name}`, moments: heard(agent, new URL(name, folder)) }));
});

function isStep(event: RunEventBody): event is Extract<RunEventBody, { type: "tool_call" | "tool_result" }> {
  return event.type === "tool_call" || event.type === "tool_result";
}

describe("transcripts of real agents", () => {
  test("are there, with tool calls and their results", () => {
    const events = transcripts.flatMap(({ moments }) => moments.flatMap((moment) => ("event" in moment ? [moment.event] : [])));
    expect(events.filter(({ type }) => type === "tool_call").length).toBeGreaterThan(5);
    expect(events.filter(({ type }) => type === "tool_result").length).toBeGreaterThan(5);
  });

  test("GRD-1: hold nothing that the guardian acts on", () => {
    const found = transcripts.flatMap(({ name, moments }) =>
      play(RUN, moments).map(({ detector, evidence }) => ({ name, detector, evidence })),
    );
    expect(found).toEqual([]);
  });

  test("GRD-1: show a loop once what they do is done over and over with the same results", () => {
    const missed = transcripts.flatMap(({ name, moments }) => {
      const steps = moments.flatMap((moment) => ("event" in moment && isStep(moment.event) ? [moment.event] : []));
      const calls = steps.filter(({ type }) => type === "tool_call").length;
      // One that sleeps waits for something: asking again is no loop.
      if (calls === 0 || calls > 6 || steps.length !== 2 * calls || JSON.stringify(steps).includes("sleep")) return [];
      const rounds = Array.from({ length: 8 }, (_, round) =>
        steps.map((event, index): Moment => ({
          at: BEGIN + (round * steps.length + index) * 2000,
          event: { ...event, call: `${round} ${event.call}` },
        })),
      );
      const detectors = play(RUN, [{ at: BEGIN, seen: { clone: "c0" } }, ...rounds.flat()]).map(({ detector }) => detector);
      return detectors.some((one) => ["repeat", "alternation", "same_error"].includes(one)) ? [] : [{ name, steps }];
    });
    expect(missed).toEqual([]);
  });
});
