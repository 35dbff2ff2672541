/** Routes that carry bytes, events or a conversation instead of one JSON value. API, OpenAPI and client derive from it. */
import { z } from "zod";
import { HookAnswer } from "./automation.ts";
import { count, flag } from "./contract.ts";
import { CONTRACTS } from "./contracts.ts";
import { CHANNEL, STREAMS, type Stream } from "./routes.ts";
import { VivEvent } from "./event.ts";
import { FileChange, FileEntry, SandboxPath } from "./files.ts";
import { JobId, JobOutput } from "./job.ts";
import { AutomationId, CommandId, RunId, SandboxRef } from "./ids.ts";
import { ExecutionEvent, ExecutionId } from "./notebook.ts";
import { Port } from "./preview.ts";
import { RunEvent } from "./run.ts";
import { ClientMessage, ExecOpen, PortMessage, ScreenMessage, ServerMessage, TunnelMessage } from "./streams.ts";

const user = CONTRACTS.statFile.input.shape.user;
const ofSandbox = z.strictObject({ sandbox: SandboxRef });
const ofFile = ofSandbox.extend({ path: SandboxPath, user });

const ofPort = ofSandbox.extend({ port: Port });

/** What travels over a WebSocket. Text messages are JSON. */
export interface SocketMessages {
  /** First text message of the caller, before any other. */
  readonly opening?: z.ZodType;
  /** Text messages of the caller. */
  readonly client: z.ZodType;
  /** Text messages of the server. */
  readonly server: z.ZodType;
  /** What binary messages are, for documentation. */
  readonly binary: string;
}

/** What a stream answers with. */
export type StreamOutput =
  | { readonly json: z.ZodType }
  /** Content type of the bytes. */
  | { readonly bytes: string }
  /** Data of each server-sent event. */
  | { readonly events: z.ZodType }
  | { readonly messages: SocketMessages };

export interface StreamRoute extends Stream {
  readonly summary: string;
  /** Fields in the path, then those of the query. */
  readonly input: z.ZodObject;
  /** Content type of the request's body. */
  readonly body?: string;
  readonly output: StreamOutput;
}

const OF_COMMAND = {
  client: ClientMessage,
  server: ServerMessage,
  binary: `One byte for the channel (${Object.entries(CHANNEL)
    .map(([name, byte]) => `${byte} ${name}`)
    .join(", ")}), then its bytes`,
} as const satisfies SocketMessages;

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
    output: { events: VivEvent },
  },
  callHook: {
    ...STREAMS.callHook,
    summary: "Call the webhook of an automation; the Viv-Signature header signs the body, and no token is needed",
    input: z.strictObject({ automation: AutomationId }),
    body: "application/octet-stream",
    output: { json: HookAnswer },
  },
  runEvents: {
    ...STREAMS.runEvents,
    summary: "Events of a run after a number (or after the Last-Event-ID header), then live ones until it has ended, as server-sent events",
    input: z.strictObject({ run: RunId, after: count(0).optional().describe("Number of an event; all of them if left out.") }),
    output: { events: RunEvent },
  },
  jobOutput: {
    ...STREAMS.jobOutput,
    summary: "Output of a job from its beginning on, as far as it is kept, then how the job ended, as server-sent events",
    input: z.strictObject({ job: JobId }),
    output: { events: JobOutput },
  },
  readFile: {
    ...STREAMS.readFile,
    summary: "Content of a file; the viv-entry header says what it is",
    input: ofFile,
    output: { bytes: "application/octet-stream" },
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
    output: { json: FileEntry },
  },
  patch: {
    ...STREAMS.patch,
    summary: "What changed in the project since the base, as a patch that git apply takes",
    input: ofSandbox.extend({ promotable: flag.default(false).describe("Only what a promotion would take.") }),
    output: { bytes: "text/x-diff" },
  },
  packFiles: {
    ...STREAMS.packFiles,
    summary: "A file or folder as a tar archive",
    input: ofFile,
    output: { bytes: "application/x-tar" },
  },
  unpackFiles: {
    ...STREAMS.unpackFiles,
    summary: "Unpack a tar archive into a folder",
    input: ofFile,
    body: "application/x-tar",
    output: { json: UnpackReport },
  },
  watchFiles: {
    ...STREAMS.watchFiles,
    summary: "Changes below a path as they happen, as server-sent events",
    input: ofFile.extend({ recursive: flag.optional().describe("Also in folders below.") }),
    output: { events: FileChange },
  },
  exec: {
    ...STREAMS.exec,
    summary: "Run a command and talk to it; the first message says what to run",
    input: ofSandbox,
    output: { messages: { opening: ExecOpen, ...OF_COMMAND } },
  },
  attach: {
    ...STREAMS.attach,
    summary: "Listen to a command that runs, and talk to it",
    input: ofSandbox.extend({ command: CommandId, stdin: flag.optional().describe("Whether standard input follows.") }),
    output: { messages: OF_COMMAND },
  },
  tunnel: {
    ...STREAMS.tunnel,
    summary: "One TCP connection to a port inside",
    input: ofPort,
    output: { messages: { client: TunnelMessage, server: TunnelMessage, binary: "Bytes of the connection" } },
  },
  openPort: {
    ...STREAMS.openPort,
    summary: "A port of 127.0.0.1 that leads to a port inside as long as this connection is open; for callers on the Unix socket alone",
    input: ofPort.extend({
      local: count(0, 65_535).describe("The local port; 0 for any free one."),
      namespace: z.string().max(64).describe("The caller's `/proc/self/ns/net`: another loopback than the server's is refused."),
    }),
    output: { messages: { client: TunnelMessage, server: PortMessage, binary: "None" } },
  },
  executionEvents: {
    ...STREAMS.executionEvents,
    summary: "Outputs of an execution so far, then those that come, until it has ended, as server-sent events",
    input: ofSandbox.extend({ execution: ExecutionId }),
    output: { events: ExecutionEvent },
  },
  screenshot: {
    ...STREAMS.screenshot,
    summary: "The screen of a sandbox as a picture",
    input: ofSandbox,
    output: { bytes: "image/png" },
  },
  desktop: {
    ...STREAMS.desktop,
    summary: "The screen of a sandbox by RFB, as noVNC speaks it; a viewer only looks unless it takes over",
    input: ofSandbox.extend({ control: flag.default(false).describe("Take over keys and pointer, until the connection ends.") }),
    output: { messages: { client: TunnelMessage, server: ScreenMessage, binary: "Bytes of RFB" } },
  },
  proxy: {
    ...STREAMS.proxy,
    summary: "HTTP to a port inside; also WebSocket",
    input: ofPort.extend({ rest: z.string().default("").describe("Path inside, slashes allowed.") }),
    output: { bytes: "*/*" },
  },
} as const satisfies Record<string, StreamRoute>;

type Routes = typeof STREAM_ROUTES;
export type StreamName = keyof Routes;
/** What a caller passes. */
export type StreamInputOf<Name extends StreamName> = z.input<Routes[Name]["input"]>;
/** What a handler gets, after parsing. */
export type StreamParsedOf<Name extends StreamName> = z.output<Routes[Name]["input"]>;

type StreamsWith<Output> = { [Name in StreamName]: Routes[Name]["output"] extends Output ? Name : never }[StreamName];
/** Names of streams that are WebSockets. */
export type SocketName = StreamsWith<{ readonly messages: SocketMessages }>;
/** Names of streams of server-sent events. */
export type EventStreamName = StreamsWith<{ readonly events: z.ZodType }>;
export type StreamEventOf<Name extends EventStreamName> = z.output<Routes[Name]["output"]["events"]>;
export type StreamJsonOf<Name extends StreamsWith<{ readonly json: z.ZodType }>> = z.output<Routes[Name]["output"]["json"]>;
/** What a caller or the server may say over a WebSocket. */
export type SocketMessageOf<Name extends SocketName, Side extends "client" | "server"> = z.output<Routes[Name]["output"]["messages"][Side]>;
