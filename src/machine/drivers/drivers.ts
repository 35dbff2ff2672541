/**
 * A way to isolate. Every driver passes one contract suite (test/support/driver-contract.ts); differences are capability data.
 *
 * What holds for all drivers:
 * - Callers choose the ids of sandboxes and commands, and do one thing at a time with a sandbox's life: launch, adopt, stop, clear.
 *   Commands, files and ports are used side by side.
 * - A sandbox's processes end with stop(), with their own end, or with the machine. A walled driver's outlive the server, and
 *   the next server finds them by adopt(); the commands of a driver without walls end with the server.
 * - A command's output and its end are in its log, whether or not a caller listens.
 * - clear() and reconcile() end what still runs, and may be called again after a crash.
 * - What a driver lacks is refused as `unsupported`; its capabilities say so beforehand.
 */
import type { Duplex, Readable } from "node:stream";
import type { Frame } from "../../base/host/frames.ts";
import type { ListedProcess } from "../../base/host/process-list.ts";
import type { HandedOutput } from "../../base/schema/command.ts";
import type { FileChange, FileEntry } from "../../base/schema/files.ts";
import type { Limits } from "../../base/schema/sandbox.ts";
import type { Launched } from "../../base/store/rows.ts";
import type { Base, LargeIds } from "../../base/store/rows.ts";
import type { VolumePaths } from "../volumes/disks.ts";

export interface DriverCapabilities {
  readonly walled: boolean;
  readonly pause: boolean;
  /** hard: the kernel holds CPU, memory and process limits. */
  readonly limits: "hard" | "watched" | "none";
  /** Which of them programs inside find where they look for the size of the machine. */
  readonly limitsSeen: readonly ("cpus" | "memory")[];
  /** All users of the machine exist inside, root included. */
  readonly allUsers: boolean;
  readonly ports: boolean;
}

/** What the kernel must know of a sandbox before there is anything in it. */
export interface LaunchRequest {
  readonly sandbox: string;
  readonly limits: Limits;
  /** Number of the id range, for drivers that map ids. */
  readonly range: number;
  /** Ids beyond the range that exist inside, for drivers that map ids. */
  readonly largeIds: LargeIds;
  readonly sudo: boolean;
  /**
   * Of a launch ahead it comes when a sandbox is asked for. What is hidden is what is to be hidden then; the mounts of the machine are
   * those of the beginning, so the caller gives a content only where they are still the same. Without one, nothing is left of the launch.
   */
  readonly content: LaunchContent | Promise<LaunchContent>;
}

/** What a sandbox finds itself in. */
export interface LaunchContent {
  readonly name: string;
  /** Makes the volume, or gives the one that is there. A driver calls it once, when all that is done without it is on its way. */
  readonly volume: () => Promise<VolumePaths>;
  readonly base: Base;
  readonly project: string;
  /** Absolute paths that do not exist inside, and those that do although they would not. */
  readonly mask: readonly string[];
  readonly expose: readonly string[];
  /** Only the project and folders for temporary files can be written to, by any user inside. */
  readonly readOnly: boolean;
  /** With `readOnly`: not the project either. */
  readonly sealed: boolean;
  /** Home folder of the caller. */
  readonly home: string;
  /** Called once `sockets()` is there, before the processes are. */
  readonly meanwhile?: () => void;
  /** Whether a command follows at once. */
  readonly isUsedAtOnce: boolean;
}

export interface ExecRequest {
  readonly id: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly user: string;
  readonly terminal?: { rows: number; cols: number };
  readonly stdin: boolean;
  readonly timeoutMs?: number;
  /** Its caller waits for the end: the driver may tell of the start together with what follows it. For commands without input. */
  readonly brief?: boolean;
}

export interface RawExit {
  readonly code: number | null;
  readonly signal: number | null;
  readonly timedOut: boolean;
  readonly outputBytes: number;
  readonly droppedBytes: number;
  readonly cpuMs: number;
  readonly wallMs: number;
}

export type OutputChunk =
  | { readonly stream: "stdout" | "stderr"; readonly data: Buffer }
  | { readonly stream: "gap"; readonly bytes: number };

/** A command as the server holds it. */
export interface RunningCommand {
  readonly pid: number;
  /** Bytes of output before what is heard here; they are in the log. */
  readonly offset: number;
  /** Output in order; not reading it makes a command started here wait. Ends when the command has ended. */
  readonly output: AsyncIterable<OutputChunk>;
  readonly exit: Promise<RawExit>;
  write(data: Uint8Array): Promise<void>;
  endInput(): void;
  resize(rows: number, cols: number): void;
  signal(signal: number): void;
  /** Stops listening; the command goes on. */
  detach(): void;
  /**
   * From now on another program reads the output: `take` is awaited between the last that comes here and the rest. Absent, or false,
   * where output can't be handed over.
   */
  handOver?(take: (handed: HandedOutput) => Promise<void>): boolean;
  /** Output that no reader has taken comes here again. */
  handBack?(): void;
}

export interface CommandLog {
  readonly chunks: OutputChunk[];
  /** Bytes of output before the first chunk. */
  readonly offset: number;
  /** Set when the command has ended. */
  readonly exit: RawExit | null;
}

/** Logs of commands outlive their sandbox, until the driver clears it. */
export interface CommandLogs {
  /** The logged output of a command; empty when there is no log. */
  read(sandbox: string, command: string): Promise<CommandLog>;
  /** Removes the oldest logs of commands that have ended until at most so many bytes are left; says how many are. */
  trim(sandbox: string, running: ReadonlySet<string>, mostBytes: number): Promise<number>;
}

export interface CommandOperations {
  /**
   * Resolves when the program runs; its id is the caller's. Refused as `command_not_found`, `command_not_runnable`,
   * `file_not_found` (the folder), `not_running` (the sandbox), `unsupported` (a user or a terminal that is not to be had here).
   */
  exec(request: ExecRequest): Promise<RunningCommand>;
  /** Listens to a command that runs already; undefined when it has ended. */
  attach(command: string, stdin: boolean): Promise<RunningCommand | undefined>;
}

export interface Usage {
  readonly memoryBytes: number | null;
  /** The most it ever was; absent where the kernel does not keep it. */
  readonly peakMemoryBytes?: number | null;
  readonly cpuMs: number | null;
  readonly processes: number | null;
  /** Times the kernel refused memory or killed for it, refused a process: counters that only grow. */
  readonly outOfMemory: number;
  readonly tooManyProcesses: number;
}

/** One change to a tree; the path is relative to the tree's folder. */
export type FileStep =
  /** A file or link; absent is fine, a folder stays. */
  | { readonly do: "remove"; readonly path: string }
  /** Replaces whatever is there, makes the folders above. A file that is replaced keeps its owner and the rest of its mode. */
  | { readonly do: "file"; readonly path: string; readonly executable: boolean; readonly body: AsyncIterable<Uint8Array> }
  | { readonly do: "link"; readonly path: string; readonly target: string }
  /** A folder with those above it; one that is there stays, anything else there too. */
  | { readonly do: "folder"; readonly path: string }
  /** A folder, if it is empty. */
  | { readonly do: "prune"; readonly path: string };

export interface FileOperations {
  stat(path: string, user: string): Promise<FileEntry>;
  list(path: string, user: string, depth: number, limit: number): Promise<FileEntry[]>;
  read(path: string, user: string, range?: { offset: number; length: number }): Promise<{ entry: FileEntry; body: Readable }>;
  /** Complete or not at all. */
  write(path: string, user: string, body: AsyncIterable<Uint8Array>, options: { mode?: number; parents?: boolean }): Promise<void>;
  move(path: string, to: string, user: string, replace: boolean): Promise<void>;
  remove(path: string, user: string, recursive: boolean): Promise<void>;
  mkdir(path: string, user: string, parents: boolean): Promise<void>;
  /**
   * Changes a tree step by step, never through a link. Each step is complete or not done; those done stay when one fails.
   * What changed after the time `since` is left alone, and told.
   */
  apply(folder: string, user: string, steps: AsyncIterable<FileStep>, since?: number): Promise<string[]>;
  watch(path: string, user: string, recursive: boolean, signal: AbortSignal): AsyncIterable<FileChange>;
  /** Has `move` read or write a file, and takes its word for the end. Absent where only this server can. */
  carry?(path: string, user: string, direction: CarryDirection, move: MoveFile): Promise<void>;
}

/** A file inside is read, or written whole. */
export type CarryDirection = { readonly op: "read" } | { readonly op: "write"; readonly mode?: number };

/** A program of this machine that moves the bytes of a file asks process 1 for it at the socket, by this request; answers with the last frame. */
export type MoveFile = (socket: string, request: Buffer) => Promise<Frame>;

/** A port of the sandbox's loopback, or the absolute path of a Unix socket inside. */
export type DialTarget = number | string;

/** A launched sandbox. */
export interface Walls {
  /** For the sandbox's row, and for adopt() after a restart of the server. */
  readonly launched: Launched;
  /** Process 1 as the host numbers it, for people alone; null where there is none. */
  readonly processId: number | null;
  /** Whether its process 1 runs. Cheap enough for every create. */
  isAlive(): Promise<boolean>;
  /** Throws `cell_incompatible` when another version launched it, whose processes this one can't speak with. */
  greet(): Promise<void>;
  dial(target: DialTarget): Promise<Duplex>;
  readonly commands: CommandOperations;
  readonly files: FileOperations;
  usage(): Promise<Usage>;
  /** Of the usage the processor time alone: it is asked for every sandbox every few seconds. */
  cpuMs(): Promise<number | null>;
  /** What runs inside, but for process 1 and what waits for commands: so many at most. Refused as `unsupported` without walls. */
  processes(most: number): Promise<ListedProcess[]>;
  /** Whether programs run inside, and have written so much that the disk does not have yet that they would notice a wait for it. */
  hasMuchUnwritten(): boolean;
  limit(limits: Limits): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends every process: politely first when a grace is given. Resolves when the last is gone. */
  stop(graceMs: number): Promise<void>;
}

/** What decides which of reality's paths a sandbox does not see. */
export type MaskRequest = Pick<LaunchContent, "home" | "project" | "mask" | "expose">;

export interface Driver {
  readonly name: "native" | "folder";
  readonly capabilities: DriverCapabilities;
  readonly logs: CommandLogs;
  launch(request: LaunchRequest): Promise<Walls>;
  /** Finds a launched sandbox again; undefined when it is gone. */
  adopt(sandbox: string, launched: Launched, limits: Limits): Promise<Walls | undefined>;
  /** Removes what an ended sandbox left on the host outside its volume; its logs too when it is thrown away. Absent is fine. */
  clear(sandbox: string, logs: "keep" | "remove"): Promise<void>;
  /** Clears everything of this driver that belongs to no sandbox kept; says what it removed. Asks what to keep after it has looked. */
  reconcile(keep: () => Promise<ReadonlySet<string>>): Promise<string[]>;
  /** Folder of the sockets that forwarded ports of a sandbox lead to; undefined where there are no walls to forward through. */
  sockets(sandbox: string): string | undefined;
  /** What of reality does not exist inside, for people. */
  masked(hiding: MaskRequest): Promise<string[]>;
  /** Whether a launched sandbox hides what a launch with these wishes would hide now. */
  hidesAsNow(sandbox: string, hiding: MaskRequest): Promise<boolean>;
  /** Called once per sandbox whose process 1 ended without stop(). */
  onExit(listener: (sandbox: string) => void): void;
  close(): Promise<void>;
}
