/** Routes that carry bytes, events or a conversation instead of one JSON value. API, OpenAPI and client derive from it. */
import { z } from "zod";
import { count } from "./contract.ts";
import { CONTRACTS } from "./contracts.ts";
import { STREAMS, type Stream } from "./routes.ts";
import { FileEntry, SandboxPath } from "./files.ts";
import { CommandId, SandboxRef } from "./ids.ts";

const user = CONTRACTS.statFile.input.shape.user;
const flag = z.enum(["true", "false", "1", "0"]).transform((text) => text === "true" || text === "1");
const ofSandbox = z.strictObject({ sandbox: SandboxRef });
const ofFile = ofSandbox.extend({ path: SandboxPath, user });

/** Plain decimal only: a check that compares ports must not miss another spelling of the same port. */
const Port = count(1, 65_535).describe("Port inside the sandbox.");

const ofPort = ofSandbox.extend({ port: Port });

interface StreamRoute extends Stream {
  readonly summary: string;
  /** Fields in the path, then those of the query. */
  readonly input: z.ZodObject;
  /** What the request's body is, for documentation. */
  readonly body?: string;
  /** What the answer's body is: a schema for JSON, a content type otherwise. */
  readonly output: z.ZodType | string;
}

export const UnpackReport = z
  .object({ files: z.number().int().describe("Files written."), bytes: z.number().int().describe("Bytes written.") })
  .describe("What was unpacked.");

export const STREAM_ROUTES = {
  events: {
    ...STREAMS.events,
    summary: "Events after a sequence number (or after the Last-Event-ID header), then live ones, as server-sent events",
    input: z.strictObject({
      after: count(0).optional().describe("Sequence number; everything kept if left out."),
      sandbox: SandboxRef.optional(),
      uses: SandboxRef.optional().describe("A sandbox that is in use while the stream is open, whatever events it carries."),
      as: z.string().min(1).max(200).default("a listener").describe("What that use is called where the sandbox is shown."),
    }),
    output: "text/event-stream",
  },
  readFile: {
    ...STREAMS.readFile,
    summary: "Content of a file; the viv-entry header says what it is",
    input: ofFile,
    output: "application/octet-stream",
  },
  writeFile: {
    ...STREAMS.writeFile,
    summary: "Write a file, complete or not at all",
    input: ofFile.extend({
      mode: z
        .string()
        .regex(/^[0-7]{1,4}$/, "a mode is octal")
        .transform((text) => Number.parseInt(text, 8))
        .optional()
        .describe("Permission bits, octal."),
      parents: flag.optional().describe("Make missing folders."),
    }),
    body: "application/octet-stream",
    output: FileEntry,
  },
  patch: {
    ...STREAMS.patch,
    summary: "What changed in the project since the base, as a patch that git apply takes",
    input: ofSandbox.extend({ promotable: flag.default(false).describe("Only what a promotion would take.") }),
    output: "text/x-diff",
  },
  packFiles: {
    ...STREAMS.packFiles,
    summary: "A file or folder as a tar archive",
    input: ofFile,
    output: "application/x-tar",
  },
  unpackFiles: {
    ...STREAMS.unpackFiles,
    summary: "Unpack a tar archive into a folder",
    input: ofFile,
    body: "application/x-tar",
    output: UnpackReport,
  },
  watchFiles: {
    ...STREAMS.watchFiles,
    summary: "Changes below a path as they happen, as server-sent events",
    input: ofFile.extend({ recursive: flag.optional().describe("Also in folders below.") }),
    output: "text/event-stream",
  },
  exec: {
    ...STREAMS.exec,
    summary: "Run a command and talk to it; the first message says what to run",
    input: ofSandbox,
    output: "websocket",
  },
  attach: {
    ...STREAMS.attach,
    summary: "Listen to a command that runs, and talk to it",
    input: ofSandbox.extend({ command: CommandId, stdin: flag.optional().describe("Whether standard input follows.") }),
    output: "websocket",
  },
  tunnel: {
    ...STREAMS.tunnel,
    summary: "One TCP connection to a port inside; binary messages are its bytes",
    input: ofPort,
    output: "websocket",
  },
  proxy: {
    ...STREAMS.proxy,
    summary: "HTTP to a port inside; also WebSocket",
    input: ofPort,
    output: "*/*",
  },
} as const satisfies Record<string, StreamRoute>;

export type StreamName = keyof typeof STREAM_ROUTES;
export type StreamParsedOf<Name extends StreamName> = z.output<(typeof STREAM_ROUTES)[Name]["input"]>;
