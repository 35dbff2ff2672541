/**
 * Executions on the disk of the host: one file each, a line for its beginning, for each output and for its end, written as they come.
 * A server that is killed leaves what it heard; the next one goes on from there.
 */
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { namesIn } from "../../base/host/names-in.ts";
import { CodeOutput, Execution } from "../../base/schema/notebook.ts";

const Began = Execution.pick({ id: true, sandbox: true, context: true, startedAt: true });
export type Began = z.infer<typeof Began>;

const Ended = Execution.pick({ state: true, reason: true, count: true, droppedBytes: true, endedAt: true });
export type Ended = z.infer<typeof Ended>;

const Line = z.union([z.object({ began: Began }), z.object({ output: CodeOutput }), z.object({ ended: Ended })]);
type Line = z.infer<typeof Line>;

export interface KeptExecution {
  readonly began: Began;
  readonly outputs: readonly CodeOutput[];
  /** Absent where no server has heard of its end. */
  readonly ended: Ended | undefined;
}

/** A file that is written to. On a full disk it lacks lines, and the execution goes on. */
export class ExecutionLog {
  #file: number | undefined;

  constructor(path: string) {
    try {
      this.#file = openSync(path, "a", 0o600);
    } catch {
      // What happens is told to those who listen now, and not kept.
      this.#file = undefined;
    }
  }

  write(line: Line): void {
    if (this.#file === undefined) return;
    try {
      writeSync(this.#file, `${JSON.stringify(line)}\n`);
    } catch {
      this.close();
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

/** A line that a kill cut off counts as not written. */
function lineOf(text: string): Line | undefined {
  try {
    return Line.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

export class ExecutionLogs {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Ids of sandboxes that have some. */
  sandboxes(): string[] {
    return namesIn(this.#folder);
  }

  open(sandbox: string, execution: string): ExecutionLog {
    try {
      mkdirSync(join(this.#folder, sandbox), { recursive: true, mode: 0o700 });
    } catch {
      // The log can't be opened either then, and says nothing.
    }
    return new ExecutionLog(this.#path(sandbox, execution));
  }

  /** The oldest first. */
  read(sandbox: string): KeptExecution[] {
    const kept = namesIn(join(this.#folder, sandbox)).flatMap((name) => {
      const lines = readFileSync(join(this.#folder, sandbox, name), "utf8")
        .split("\n")
        .flatMap((text) => lineOf(text) ?? []);
      const began = lines.flatMap((line) => ("began" in line ? [line.began] : []))[0];
      if (began === undefined) return [];
      const outputs = lines.flatMap((line) => ("output" in line ? [line.output] : []));
      return [{ began, outputs, ended: lines.flatMap((line) => ("ended" in line ? [line.ended] : []))[0] }];
    });
    return kept.toSorted((one, other) => (one.began.startedAt < other.began.startedAt ? -1 : 1));
  }

  bytes(sandbox: string, execution: string): number {
    return statSync(this.#path(sandbox, execution), { throwIfNoEntry: false })?.size ?? 0;
  }

  remove(sandbox: string, execution?: string): void {
    rmSync(execution === undefined ? join(this.#folder, sandbox) : this.#path(sandbox, execution), { recursive: true, force: true });
  }

  #path(sandbox: string, execution: string): string {
    return join(this.#folder, sandbox, `${execution}.jsonl`);
  }
}
