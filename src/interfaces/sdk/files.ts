/** Files inside a sandbox. */
import { readBytes } from "../client/transport.ts";
import { refuseUnknown, type CallOptions, type Connection } from "./connection.ts";
import type { PathInside } from "./platform.ts";
import type { ListFilesInput, MakeFolderInput, MoveFileInput, RemoveFileInput } from "./types/files-operations.ts";
import type { FileEntry } from "./types/files.ts";

export interface FileOptions extends CallOptions {
  /** User inside whose rights apply. */
  readonly user?: string | undefined;
}

export interface WriteOptions extends FileOptions {
  /** Permission bits, such as 0o755. */
  readonly mode?: number | undefined;
  /** Makes missing folders. */
  readonly parents?: boolean | undefined;
}

export interface WatchOptions extends FileOptions {
  /** Also in folders below. */
  readonly recursive?: boolean | undefined;
}

/** A change that a watch saw. After an overflow, changes are missing. */
export interface FileChange {
  readonly change: "created" | "changed" | "removed" | "moved" | "overflow";
  /** Relative to the path that is watched. */
  readonly path: string;
}

/** What was copied. */
export interface CopyReport {
  /** Where the copy is. */
  readonly to: string;
  readonly files: number;
  readonly bytes: number;
  /** What was left out, such as links that lead elsewhere. */
  readonly skipped: readonly { readonly path: string; readonly why: string }[];
}

type OfFile<Input> = Omit<Input, "sandbox" | "path"> & CallOptions;

const FILE_OPTIONS = ["user", "signal"];

async function* once(data: string | Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield typeof data === "string" ? new TextEncoder().encode(data) : data;
}

/** Files inside a sandbox. Relative paths start at the project's folder. */
export class Files {
  readonly #connection: Connection;
  readonly #sandbox: string;

  /** @internal */
  constructor(connection: Connection, sandbox: string) {
    this.#connection = connection;
    this.#sandbox = sandbox;
  }

  /** A file as text. */
  async read(path: string, options: FileOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.readBytes(path, options));
  }

  /** A file as bytes. */
  async readBytes(path: string, options: FileOptions = {}): Promise<Uint8Array> {
    return readBytes(await this.readStream(path, options));
  }

  /** A file as a stream of bytes. */
  async readStream(path: string, options: FileOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    refuseUnknown("files.read", options, FILE_OPTIONS);
    const { user, signal } = options;
    return this.#connection.use(async (client) => (await client.readFile(this.#sandbox, path, user, signal)).body, signal);
  }

  /** Writes a file, complete or not at all. */
  async write(path: string, data: string | Uint8Array | AsyncIterable<Uint8Array>, options: WriteOptions = {}): Promise<FileEntry> {
    refuseUnknown("files.write", options, [...FILE_OPTIONS, "mode", "parents"]);
    const body = typeof data === "string" || data instanceof Uint8Array ? once(data) : data;
    return this.#connection.use((client) => client.writeFile(this.#sandbox, path, body, defined(options)), options.signal);
  }

  /** What is in a folder. */
  async list(path = ".", options: OfFile<ListFilesInput> = {}): Promise<FileEntry[]> {
    const { signal, ...rest } = options;
    return (await this.#connection.call("listFiles", { sandbox: this.#sandbox, path, ...rest }, signal)).entries;
  }

  /** One file; rejects with `file_not_found` if it is not there. */
  async stat(path: string, options: FileOptions = {}): Promise<FileEntry> {
    const { signal, ...rest } = options;
    return this.#connection.call("statFile", { sandbox: this.#sandbox, path, ...rest }, signal);
  }

  /** Renames a file or folder. */
  async move(path: string, to: string, options: Omit<OfFile<MoveFileInput>, "to"> = {}): Promise<void> {
    const { signal, ...rest } = options;
    await this.#connection.call("moveFile", { sandbox: this.#sandbox, path, to, ...rest }, signal);
  }

  /** Removes a file, or a folder with `recursive`. */
  async remove(path: string, options: OfFile<RemoveFileInput> = {}): Promise<void> {
    const { signal, ...rest } = options;
    await this.#connection.call("removeFile", { sandbox: this.#sandbox, path, ...rest }, signal);
  }

  /** Makes a folder. */
  async mkdir(path: string, options: OfFile<MakeFolderInput> = {}): Promise<void> {
    const { signal, ...rest } = options;
    await this.#connection.call("makeFolder", { sandbox: this.#sandbox, path, ...rest }, signal);
  }

  /** A file or folder as a tar archive. */
  async pack(path: string, options: FileOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    refuseUnknown("files.pack", options, FILE_OPTIONS);
    const { user, signal } = options;
    return this.#connection.use((client) => client.packFiles(this.#sandbox, path, user, signal), signal);
  }

  /** Unpacks a tar archive into a folder. */
  async unpack(
    path: string,
    archive: Uint8Array | AsyncIterable<Uint8Array>,
    options: FileOptions = {},
  ): Promise<{ readonly files: number; readonly bytes: number }> {
    refuseUnknown("files.unpack", options, FILE_OPTIONS);
    const { user, signal } = options;
    const body = archive instanceof Uint8Array ? once(archive) : archive;
    return this.#connection.use((client) => client.unpackFiles(this.#sandbox, path, body, user, signal), signal);
  }

  /** Copies a file or folder of this machine into the sandbox. Node only. */
  async upload(local: string, path: string, options: FileOptions = {}): Promise<CopyReport> {
    refuseUnknown("files.upload", options, FILE_OPTIONS);
    return (await this.#connection.machine("files.upload")).upload(local, this.#inside(path, options), options.signal);
  }

  /** Copies a file or folder out of the sandbox; nothing is written outside the target. Node only. */
  async download(path: string, local: string, options: FileOptions = {}): Promise<CopyReport> {
    refuseUnknown("files.download", options, FILE_OPTIONS);
    return (await this.#connection.machine("files.download")).download(this.#inside(path, options), local, options.signal);
  }

  /** Changes below a path as they happen, until the signal. */
  async *watch(path = ".", options: WatchOptions = {}): AsyncGenerator<FileChange, void, void> {
    refuseUnknown("files.watch", options, [...FILE_OPTIONS, "recursive"]);
    const leaving = new AbortController();
    const { signal: caller, ...rest } = options;
    const signal = caller === undefined ? leaving.signal : AbortSignal.any([caller, leaving.signal]);
    try {
      yield* (await this.#connection.client()).watchFiles(this.#sandbox, path, { ...defined(rest), signal });
    } finally {
      leaving.abort();
    }
  }

  #inside(path: string, { user }: FileOptions): PathInside {
    return { sandbox: this.#sandbox, path, ...(user === undefined ? {} : { user }) };
  }
}

type Defined<Fields> = { [Name in keyof Fields]: Exclude<Fields[Name], undefined> };

/** Without the fields that are undefined. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<Fields>;
}
