/** A tool call with its result, as far as the guardian remembers it. */
import type { RunEvent, ToolKind } from "../../base/schema/run.ts";
import { callText, errorText, fingerprint, withoutDurations, withoutNoise } from "./likeness.ts";
import { commandOf, dependsOnOutside } from "./outside.ts";

type Called = Extract<RunEvent, { type: "tool_call" }>;
type Answered = Extract<RunEvent, { type: "tool_result" }>;

export interface OpenCall {
  readonly call: string;
  readonly tool: string;
  readonly kind: ToolKind;
  readonly input: unknown;
  readonly sequence: number;
  readonly at: number;
  /** State of the clone when it began. */
  readonly clone: string;
}

export interface Step {
  readonly kind: ToolKind;
  /** For evidence: the tool, or the command it ran. */
  readonly title: string;
  /** What it was asked to do. */
  readonly callKey: string;
  /** What came of it, without what differs each time. A failure is the same however long it took. */
  readonly resultKey: string;
  /** What came of it, without durations. */
  readonly alikeKey: string;
  readonly ok: boolean;
  /** What is wrong; null if nothing is. */
  readonly error: { readonly key: string; readonly text: string } | null;
  readonly clone: string;
  readonly outside: boolean;
  /** Of the call and of its result. */
  readonly sequences: readonly [number, number];
  readonly calledAt: number;
  readonly at: number;
}

export function openCall(event: Called, at: number, clone: string): OpenCall {
  const { call, tool, kind, input, sequence } = event;
  return { call, tool, kind, input, sequence, at, clone };
}

export function closedStep(open: OpenCall, { ok, output, sequence }: Answered, at: number, background: number): Step {
  const { tool, kind, input, clone } = open;
  const told = withoutNoise(output);
  const alikeKey = fingerprint(String(ok), withoutDurations(told));
  const error = ok ? null : errorText(output);
  return {
    kind,
    title: titleOf(tool, input),
    callKey: fingerprint(callText(tool, input)),
    resultKey: ok ? fingerprint(String(ok), told) : alikeKey,
    alikeKey,
    ok,
    error: error === null || error === "" ? null : { key: fingerprint(error), text: error },
    clone,
    outside: dependsOnOutside({ tool, kind, input, ok, output, background }),
    sequences: [open.sequence, sequence],
    calledAt: open.at,
    at,
  };
}

function titleOf(tool: string, input: unknown): string {
  const command = commandOf(input);
  if (command !== null) return command.slice(0, 200);
  const first = typeof input === "object" && input !== null ? Object.values(input).find((value) => typeof value === "string") : undefined;
  return first === undefined ? tool : `${tool} ${first.slice(0, 200)}`;
}
