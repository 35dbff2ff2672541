/** What differs between a program in Node and a page in a browser: the way to the server, and what the machine around it has. */
import type { ApiClient } from "../client/api-client.ts";
import type { CopyReport } from "./files.ts";

/** A path in a sandbox. */
export interface PathInside {
  readonly sandbox: string;
  readonly path: string;
  readonly user?: string;
}

/** What a call sends along of its caller, where caller and server are on one machine. */
export interface Caller {
  /** The project of a call that names none; absolute. */
  project(path: string | undefined): string | undefined;
  readonly env?: Record<string, string>;
  /** Runs commands inside. */
  readonly user?: string;
}

/** A port of this machine that leads into a sandbox. */
export interface OpenPort {
  readonly port: number;
  close(): Promise<void>;
}

/** The files and ports of the machine that the program runs on. */
export interface Machine {
  upload(local: string, to: PathInside, signal: AbortSignal | undefined): Promise<CopyReport>;
  download(from: PathInside, local: string, signal: AbortSignal | undefined): Promise<CopyReport>;
  listen(sandbox: string, port: number, local: number): Promise<OpenPort>;
}

export interface Platform {
  /** Finds the server, or starts it. */
  connect(): Promise<ApiClient>;
  readonly caller: Caller;
  /** Undefined in a browser. */
  readonly machine: Machine | undefined;
  /** The token of a person who may answer questions. */
  readonly approver: string | undefined;
}
