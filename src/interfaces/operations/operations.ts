/** What the server can do, as the API, later MCP, and tests call it. */
import type { Duplex, Readable } from "node:stream";
import type { OperationName, OutputOf, ParsedOf } from "../../base/schema/contracts.ts";
import type { DesktopHolder } from "../../base/schema/desktop.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import type { FileChange, FileEntry } from "../../base/schema/files.ts";
import type { ExecutionEvent } from "../../base/schema/notebook.ts";
import type { JobOutput } from "../../base/schema/job.ts";
import type { RunEvent } from "../../base/schema/run.ts";
import type { ExecOpen } from "../../base/schema/streams.ts";
import type { CarryDirection, MoveFile } from "../../machine/drivers/drivers.ts";
import type { CommandStream } from "../../sandbox/commands/stream.ts";

export type Handlers = {
  readonly [Operation in OperationName]: (input: ParsedOf<Operation>, signal: AbortSignal) => Promise<OutputOf<Operation>>;
};

/** A use of a sandbox: what keeps it from being idle. */
export interface Use {
  readonly sandbox: string;
  /** What the use is called where the sandbox is shown. */
  readonly as: string;
}

export interface EventOptions {
  /** Only those about this sandbox. */
  readonly sandbox?: string | undefined;
  /** A sandbox that is in use while the caller listens. */
  readonly use?: Use | undefined;
  readonly signal: AbortSignal;
}

/** A connection on its way to a port inside. */
export interface LedConnection {
  readonly ended: Promise<unknown>;
  cut(): void;
}

export interface Streams {
  exec(sandbox: string, open: ExecOpen): Promise<CommandStream>;
  attach(sandbox: string, command: string, stdin: boolean): Promise<CommandStream>;
  dial(sandbox: string, port: number): Promise<Duplex>;
  /** Leads a connection of this machine, from which nothing was read, to a port inside. Resolves with what cuts it off, once it is led there. */
  lead(sandbox: string, port: number, local: Duplex): Promise<LedConnection>;
  /** A connection to the Jupyter of a sandbox, which runs already. */
  notebook(sandbox: string): Promise<Duplex>;
  /** Outputs of an execution so far, then those that come, until it has ended or the signal. */
  executionEvents(sandbox: string, execution: string, signal: AbortSignal): Promise<AsyncIterable<ExecutionEvent>>;
  /** The screen as a PNG file. */
  screenshot(sandbox: string): Promise<Buffer>;
  /** RFB for a viewer; one with control has keys and pointer. It is told who has them, now and when that changes. */
  desktop(sandbox: string, control: boolean, tell: (holder: DesktopHolder) => void): Promise<Duplex>;
  readFile(sandbox: string, path: string, user?: string): Promise<{ entry: FileEntry; body: Readable }>;
  writeFile(
    sandbox: string,
    path: string,
    body: AsyncIterable<Uint8Array>,
    options: { user?: string; mode?: number; parents?: boolean },
  ): Promise<FileEntry>;
  /** A file whose bytes a program of this machine moves; undefined where none can. */
  carryFile(
    sandbox: string,
    path: string,
    how: CarryDirection & { readonly user?: string },
    move: MoveFile,
  ): Promise<FileEntry | undefined>;
  /** Changes until the signal. Rejects when there can be no watch, as long as that can be told at once. */
  watchFiles(
    sandbox: string,
    path: string,
    options: { user?: string; recursive: boolean; signal: AbortSignal },
  ): Promise<AsyncIterable<FileChange>>;
  /** What a sandbox changed in the project, for `git apply`. */
  patch(sandbox: string, options: { readonly promotable: boolean }): Promise<Readable>;
  /** A tar archive of a file or folder. */
  packFiles(sandbox: string, path: string, user?: string): Promise<Readable>;
  /** Unpacks a tar archive into a folder: nothing outside it, links and special files refused. */
  unpackFiles(sandbox: string, path: string, archive: Readable, user?: string): Promise<{ files: number; bytes: number }>;
  /** Events after a sequence number, then live ones, until the signal. A listener that lags is ended. */
  events(after: number, options: EventOptions): Promise<AsyncIterable<VivEvent>>;
  /** Output of a job from its beginning on, then how it ended. */
  jobOutput(job: string, signal: AbortSignal): Promise<AsyncIterable<JobOutput>>;
  /** A signed call of a webhook; the firing that it is part of. */
  callHook(automation: string, signature: string | undefined, body: Buffer): Promise<string>;
  /** Events of a run after a number, then live ones, until it has ended or the signal. */
  runEvents(run: string, after: number, signal: AbortSignal): Promise<AsyncIterable<RunEvent>>;
}

export interface Engine {
  readonly operations: Handlers;
  readonly streams: Streams;
}
