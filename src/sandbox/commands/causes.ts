/** Why a command ended, said exactly (LIM-3): never as a mystery. */
import { constants } from "node:os";
import type { RawExit } from "../../machine/drivers/drivers.ts";
import type { Cause, CommandEnd } from "../../base/schema/command.ts";
import { wholeNumber } from "../../base/schema/numbers.ts";

const SIGNALS = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]));

export function signalName(number: number): string {
  return SIGNALS.get(number) ?? `SIG${number}`;
}

/** A signal by name (with or without SIG) or number; undefined if there is none such. */
export function signalNumber(text: string): number | undefined {
  const number = wholeNumber(text);
  if (number !== undefined) return number >= 1 && number <= 64 ? number : undefined;
  const name = text.startsWith("SIG") ? text : `SIG${text}`;
  return Object.hasOwn(constants.signals, name) ? constants.signals[name as NodeJS.Signals] : undefined;
}

/** Nothing that explains an end. */
export const NOTHING_SEEN: Circumstances = {
  outOfMemory: false,
  tooManyProcesses: false,
  diskFull: false,
  storageDamaged: false,
  cancelled: false,
};

/** What the sandbox ran into while the command ran. */
export interface Circumstances {
  readonly outOfMemory: boolean;
  readonly tooManyProcesses: boolean;
  readonly diskFull: boolean;
  readonly storageDamaged: boolean;
  readonly cancelled: boolean;
}

const MESSAGES: Readonly<Record<Exclude<Cause, "exit" | "signal">, string>> = {
  timeout: "The command reached its time limit.",
  "out-of-memory": "The sandbox ran out of memory and the kernel ended a process.",
  "disk-full": "The sandbox's disk quota is used up.",
  "too-many-processes": "The sandbox reached its limit of processes.",
  "storage-damaged": "The storage under the sandbox gave an error while the command ran: a file could not be read or written.",
  cancelled: "The command was ended on request.",
  lost: "The sandbox ended while the command ran.",
};

function causeOf(exit: RawExit, seen: Circumstances): Cause {
  if (exit.timedOut) return "timeout";
  if (exit.code === 0) return "exit";
  if (seen.outOfMemory) return "out-of-memory";
  if (seen.storageDamaged) return "storage-damaged";
  if (seen.diskFull) return "disk-full";
  if (seen.tooManyProcesses) return "too-many-processes";
  if (seen.cancelled) return "cancelled";
  return exit.signal === null ? "exit" : "signal";
}

export function commandEnd(exit: RawExit, seen: Circumstances): CommandEnd {
  const cause = causeOf(exit, seen);
  const signal = exit.signal === null ? null : signalName(exit.signal);
  const plain = cause === "signal" ? `The command was ended by ${signal ?? "a signal"}.` : null;
  return {
    cause,
    exitCode: exit.timedOut ? 124 : (exit.code ?? 128 + (exit.signal ?? 0)),
    signal,
    message: cause === "exit" || cause === "signal" ? plain : MESSAGES[cause],
    wallMs: exit.wallMs,
    cpuMs: exit.cpuMs,
    outputBytes: exit.outputBytes,
    droppedBytes: exit.droppedBytes,
  };
}

/** The end of a command whose sandbox ended under it. */
export function endedWithSandbox(cause: "cancelled" | "lost", wallMs: number): CommandEnd {
  return { cause, exitCode: 137, signal: "SIGKILL", message: MESSAGES[cause], wallMs, cpuMs: 0, outputBytes: 0, droppedBytes: 0 };
}
