/** What is asked of the cell to start a command, and what is kept of one that runs. */
import { resolve } from "node:path";
import type { ExecRequest } from "../../machine/drivers/drivers.ts";
import type { Command, CommandSpec, TerminalSize } from "../../base/schema/command.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { proxyEnvironment } from "../../rules/network/environment.ts";
import type { Parts } from "../shared/parts.ts";

export interface StartOptions extends CommandSpec {
  readonly terminal?: TerminalSize | undefined;
  readonly stdin?: boolean | undefined;
  /** An id from newId(); one is made where this is left out. */
  readonly id?: string | undefined;
  /** Name of the service that it belongs to. A command without one was asked for, and keeps the sandbox from being idle. */
  readonly service?: string | undefined;
  readonly onDisconnect?: "kill" | "keep";
  /** Whether the caller asks for nothing before the end. */
  readonly brief?: boolean | undefined;
}

/** Command line and environment travel together with a few words more. */
const SLACK_BYTES = 64 * 1024;

/** A command that runs, as it is kept. */
export function commandOf({ id, user, cwd }: ExecRequest, row: SandboxRow, options: StartOptions, pid: number): Command {
  return {
    id,
    sandbox: row.id,
    command: [...options.command],
    user,
    cwd,
    terminal: options.terminal !== undefined,
    pid,
    startedAt: new Date().toISOString(),
    running: true,
    end: null,
    ...(options.service === undefined ? {} : { service: options.service }),
  };
}

/** `display` is that of the sandbox's desktop. */
export function execRequest(
  row: SandboxRow,
  options: StartOptions,
  { models, user: config }: Pick<Parts, "models" | "user">,
  display: string | null,
): ExecRequest {
  const bytes = options.command.reduce((sum, part) => sum + Buffer.byteLength(part) + 1, 0);
  if (bytes > LIMITS.maxArgumentBytes)
    throw new VivError("invalid_input", `The command line is ${bytes} bytes; ${LIMITS.maxArgumentBytes} are allowed.`);
  if (options.command.some((part) => part.includes("\0"))) throw new VivError("invalid_input", "An argument has a NUL byte.");
  const environment = Object.entries({ ...row.env, ...options.env });
  const environmentBytes = environment.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value) + 2, 0);
  if (environmentBytes > LIMITS.maxEnvironmentBytes - SLACK_BYTES)
    throw new VivError(
      "invalid_input",
      `The environment is ${environmentBytes} bytes; ${LIMITS.maxEnvironmentBytes - SLACK_BYTES} are allowed.`,
    );
  if ([...environment.map(([, value]) => value), options.cwd ?? "", options.user ?? ""].some((text) => text.includes("\0")))
    throw new VivError("invalid_input", "The environment, the working folder or the user has a NUL byte.");
  const user = options.user ?? row.user;
  // Another user's home, name and shell come from the sandbox's own /etc/passwd.
  const { HOME: home, USER: name, LOGNAME: logname, SHELL: shell, ...rest } = row.env;
  const own = user === row.user ? defined({ HOME: home, USER: name, LOGNAME: logname, SHELL: shell }) : {};
  const proxied = row.walled ? proxyEnvironment(row.network, row.env, config.network.private) : {};
  // Tools of agents name themselves by it at the gateway, which goes by the socket all the same.
  const identity = row.walled ? { SANDBOX_ID: row.id } : {};
  // Only walls have a door to the gateway.
  const reached = row.walled ? models.environment(row.env) : {};
  const env = {
    ...rest,
    ...own,
    ...reached,
    ...identity,
    ...proxied,
    ...(display === null ? {} : { DISPLAY: display }),
    ...(options.terminal === undefined ? {} : { TERM: "xterm-256color" }),
    ...options.env,
  };
  const envBytes = Object.entries(env).reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value) + 2, 0);
  if (envBytes > LIMITS.maxEnvironmentBytes)
    throw new VivError("invalid_input", `The environment is ${envBytes} bytes; ${LIMITS.maxEnvironmentBytes} are allowed.`);
  return {
    id: options.id ?? newId("command"),
    command: options.command,
    env,
    cwd: options.cwd?.startsWith("/") === true ? options.cwd : resolve(projectInside(row), options.cwd ?? ""),
    user,
    // A caller that attaches later may type at the terminal, too.
    stdin: options.stdin === true || options.terminal !== undefined,
    ...(options.terminal === undefined ? {} : { terminal: options.terminal }),
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    ...(options.brief === true ? { brief: true } : {}),
  };
}

function defined(values: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
