/** The real command line, as a user runs it, against the state folder of a test server. */
import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from "node:child_process";
import { PROGRAM, USER_CACHE } from "./compiled.ts";
import type { TestServer } from "./server.ts";

export interface Answer {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  readonly bytes: Buffer;
}

export interface VivOptions {
  readonly cwd?: string;
  readonly input?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
}

export function vivEnvironment(
  server: Pick<TestServer, "place" | "paths">,
  more: Readonly<Record<string, string>> = {},
): NodeJS.ProcessEnv {
  return {
    PATH: process.env["PATH"],
    HOME: server.place,
    XDG_CACHE_HOME: USER_CACHE,
    VIV_HOME: server.paths.home,
    VIV_CONFIG: server.paths.config,
    ...more,
  };
}

/** Runs it to its end. */
export function viv(server: Pick<TestServer, "place" | "paths">, words: readonly string[], { cwd, input, env }: VivOptions = {}): Answer {
  const ended = spawnSync(PROGRAM, words, {
    cwd: cwd ?? server.place,
    input: input ?? "",
    env: vivEnvironment(server, env),
    maxBuffer: 256 * 1024 ** 2,
    timeout: 25_000,
  });
  return { code: ended.status, out: ended.stdout.toString(), err: ended.stderr.toString(), bytes: ended.stdout };
}

/** Starts it and leaves it running. */
export function startViv(
  server: Pick<TestServer, "place" | "paths">,
  words: readonly string[],
  { cwd, env }: VivOptions = {},
): ChildProcessWithoutNullStreams {
  return spawn(PROGRAM, words, { cwd: cwd ?? server.place, env: vivEnvironment(server, env) });
}
