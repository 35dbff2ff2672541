/** The process that a command line works for: this one, or one that has sent its words to the server (../front/). */
import type { Readable, Writable } from "node:stream";
import type { HandedOutput } from "../../base/schema/command.ts";

type CallerInput = Readable & {
  readonly isTTY?: boolean;
  setRawMode?(on: boolean): unknown;
  unref?(): unknown;
};

export type CallerOutput = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
};

/** Signals by their name; `exit` is the moment before the process ends. */
type CallerEvent = NodeJS.Signals | "exit";

export interface Caller {
  readonly stdin: CallerInput;
  readonly stdout: CallerOutput;
  readonly stderr: CallerOutput;
  on(event: CallerEvent, listener: (name: NodeJS.Signals) => void): unknown;
  off(event: CallerEvent, listener: (name: NodeJS.Signals) => void): unknown;
  /** Aborts when it has gone: what it watches goes on without it. */
  readonly gone?: AbortSignal;
  /** Words with which its own Node goes on if the server goes away that does this for it; without any, it says that and ends. */
  goesOnWith?(words: readonly string[]): void;
  /** Proof that its person may answer questions, where it has been shown already. */
  readonly approver?: string | undefined;
  /** It can read a command's output by itself, behind what has been written to its streams; `giveBack` is called if it does not. */
  takeOutput?(handed: HandedOutput, giveBack: () => void): Promise<void>;
}

export const OWN_PROCESS: Caller = process;

/** Whether a person sits at it. */
export function hasTerminal({ stdin, stdout }: Caller): boolean {
  return stdin.isTTY === true && stdout.isTTY === true;
}
