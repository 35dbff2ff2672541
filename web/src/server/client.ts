/** The server as pages see it: the published client, over what a browser has. */
import type { InputOf, OperationName, OutputOf } from "../../../src/base/schema/contracts.ts";
import type { VivEvent } from "../../../src/base/schema/event.ts";
import type { RunEvent } from "../../../src/base/schema/run.ts";
import { ApiClient } from "../../../src/interfaces/client/api-client.ts";
import type { CommandStream } from "../../../src/interfaces/client/command-stream.ts";
import { FetchTransport } from "../../../src/interfaces/client/fetch-transport.ts";
import type { Channel } from "../../../src/interfaces/client/transport.ts";
import { session } from "./session.ts";

let made: ApiClient | undefined;

/** Made when it is first needed: then this browser is logged in, or knows that it is not. */
function client(): ApiClient {
  made ??= new ApiClient(new FetchTransport({ url: location.origin, key: session()?.key ?? "" }));
  return made;
}

export function call<Name extends OperationName>(name: Name, input: InputOf<Name>, signal?: AbortSignal): Promise<OutputOf<Name>> {
  return client().call(name, input, signal);
}

/** Events after a number, then live ones, until the signal. */
export function events(after: number, signal: AbortSignal): AsyncIterable<VivEvent> {
  return client().events(after, { signal });
}

/** Events of a run after a number, then live ones until it has ended or the signal. */
export function runEvents(run: string, after: number, signal: AbortSignal): AsyncIterable<RunEvent> {
  return client().runEvents(run, after, signal);
}

async function whole(body: AsyncIterable<Uint8Array>): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of body) parts.push(new Uint8Array(chunk));
  return new Blob(parts);
}

async function* chunks(content: Blob): AsyncGenerator<Uint8Array, void, void> {
  yield new Uint8Array(await content.arrayBuffer());
}

/** What a sandbox changed in the project, as a patch; with promotable, only what a promotion would take. */
export async function patch(sandbox: string, options: { readonly promotable?: boolean }, signal?: AbortSignal): Promise<string> {
  return (await whole(await client().patch(sandbox, options, signal))).text();
}

export async function readFile(sandbox: string, path: string): Promise<Blob> {
  return whole((await client().readFile(sandbox, path)).body);
}

export async function writeFile(sandbox: string, path: string, content: Blob): Promise<void> {
  await client().writeFile(sandbox, path, chunks(content));
}

/** The screen of a sandbox; with control, keys and pointer are this page's. */
export function screen(sandbox: string, control: boolean): Promise<Channel> {
  return client().screen(sandbox, { control });
}

/** The user's shell, in a terminal of this size. It goes on when the connection breaks off. */
export function shell(sandbox: string, terminal: { readonly rows: number; readonly cols: number }): Promise<CommandStream> {
  const command = ["/bin/sh", "-c", 'exec "${SHELL:-/bin/sh}" -l'];
  return client().exec(sandbox, { command, terminal, stdin: true, onDisconnect: "keep", env: { TERM: "xterm-256color" } });
}

/** A command that runs already: what it printed so far, as far as that is kept, and what follows. */
export function attach(sandbox: string, command: string): Promise<CommandStream> {
  return client().attach(sandbox, command, { stdin: true });
}
