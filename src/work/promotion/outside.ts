/** Lines of a trusted config, run in reality: in the project, as its owner, with the caller's environment. */
import { stat } from "node:fs/promises";
import { readPeople } from "../../machine/capture/people.ts";
import { runAlone } from "../../base/host/run-alone.ts";
import { TOOL_PATH } from "../../base/host/run.ts";
import type { CheckResult } from "../../base/schema/check.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";

interface OutsideOptions {
  readonly variables?: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export async function runOutside(
  project: string,
  line: string,
  env: Readonly<Record<string, string>>,
  { variables = {}, cwd = project, timeoutMs = LIMITS.stageTimeoutMs, signal }: OutsideOptions = {},
): Promise<CheckResult> {
  const { uid, gid } = await stat(project);
  const own = process.getuid?.() ?? uid;
  const become = own === 0 && uid !== 0;
  const person = readPeople().find((one) => one.uid === uid);
  // Of another user's environment only PATH is of use.
  const inherited = become ? { PATH: env["PATH"] ?? TOOL_PATH } : { PATH: TOOL_PATH, ...env };
  const home = person === undefined ? {} : { HOME: person.home, USER: person.name, LOGNAME: person.name };
  const began = performance.now();
  const ended = runAlone("/bin/sh", ["-c", `exec 2>&1\n${line}`], {
    cwd,
    env: { ...inherited, ...(become || inherited["HOME" as keyof typeof inherited] === undefined ? home : {}), ...variables },
    timeoutMs,
    ...(signal === undefined ? {} : { signal }),
    ...(become ? { uid, gid } : {}),
  });
  const { code, output } = await ended.then(
    (result) => ({ code: result.code, output: `${result.stdout.toString()}${result.stderr}` }),
    (error: unknown) => {
      if (error instanceof VivError && error.code === "timeout") return { code: null, output: error.message };
      throw error;
    },
  );
  return {
    command: line,
    passed: code === 0,
    exitCode: code ?? 137,
    runs: 1,
    flaky: false,
    wallMs: performance.now() - began,
    tests: null,
    output: output.slice(-LIMITS.keptCheckOutput),
    cause: code === null ? "timeout" : null,
  };
}
