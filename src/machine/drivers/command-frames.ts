/** What frames of a connection or of a log say about a command. */
import { Fields, type Frame, KIND } from "../../base/host/frames.ts";
import type { OutputChunk, RawExit } from "./drivers.ts";

export function exitOf(fields: Fields): RawExit {
  return {
    code: fields.number("code") ?? null,
    signal: fields.number("signal") ?? null,
    timedOut: fields.flag("timeout"),
    outputBytes: fields.number("bytes") ?? 0,
    droppedBytes: fields.number("dropped") ?? 0,
    cpuMs: (fields.number("cpu_us") ?? 0) / 1000,
    wallMs: fields.number("wall_ms") ?? 0,
  };
}

export function outputOf(frame: Frame): OutputChunk | undefined {
  if (frame.kind === KIND.stdout) return { stream: "stdout", data: frame.payload };
  if (frame.kind === KIND.stderr) return { stream: "stderr", data: frame.payload };
  if (frame.kind === KIND.gap) return { stream: "gap", bytes: new Fields(frame.payload).number("bytes") ?? 0 };
  return undefined;
}
