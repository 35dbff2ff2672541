import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { findPaths, preparePaths, type Environment } from "../../../base/config/paths.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { command } from "../command.ts";
import { connectIfRunning } from "../connect.ts";
import { serverCommand, serverEnvironment, startServer } from "../start.ts";
import { clean } from "../text.ts";
import { parsePort } from "../values.ts";

const TOKEN_ATTEMPTS = 50;
const TOKEN_RETRY_MS = 20;

/** Runs the server as a child that has this terminal, until it ends. */
function runInForeground(flags: readonly string[], env: Environment): Promise<number> {
  const paths = findPaths(env);
  preparePaths(paths);
  const child = spawn(process.execPath, [...serverCommand(), ...flags], { stdio: "inherit", env: serverEnvironment(paths, env) });
  // Ctrl-C reaches the child by itself: both are in the terminal's foreground group.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 125)));
  });
}

/** The server writes its token right after it listens. */
async function readToken(file: string): Promise<string | null> {
  for (let attempt = 0; attempt < TOKEN_ATTEMPTS; attempt += 1) {
    const text = await readFile(file, "utf8").catch(() => "");
    if (text.endsWith("\n")) return text.trim();
    await delay(TOKEN_RETRY_MS);
  }
  return null;
}

export default command({
  name: "up",
  summary: "Start the server",
  details:
    "Other commands start it by themselves; this one is for a TCP port or for watching it. The port is on 127.0.0.1 alone and wants the token in the state folder's `token` file. State is in $VIV_HOME, else /var/lib/vivarium for root and ~/.local/state/vivarium for others.",
  examples: [
    ["viv up", "start it if it does not run"],
    ["viv up --listen 7777", "answer on 127.0.0.1:7777, too, to those who have the token"],
    ["viv up --foreground", "stay attached and see its log"],
  ],
  options: {
    listen: { type: "text", value: "PORT", summary: "Listen on this port of 127.0.0.1, too" },
    foreground: { type: "flag", short: "f", summary: "Run in the foreground until ctrl-C" },
  },
  positionals: [],
  async run({ options, json, screen, env }) {
    const flags = options.listen === undefined ? [] : ["--listen", String(parsePort("--listen", options.listen))];
    const running = await connectIfRunning(env);
    if (running === undefined && options.foreground) return runInForeground(flags, env);
    const paths = findPaths(env);
    const report = (line: string): void => screen.say(`  server: ${clean(line)}`);
    if (running === undefined) await screen.during("Starting the server", startServer(paths, { flags, env, report }));
    const client = running ?? (await connectIfRunning(env));
    if (client === undefined) throw new VivError("server_unreachable", "The server ended right after it started.");
    const status = await client.call("status", {});
    client.close();
    const asked = options.listen !== undefined && !(status.listen ?? "").endsWith(`:${options.listen}`);
    if (running !== undefined && (options.foreground || asked)) {
      throw new VivError(
        "server_running",
        `A server already runs (process ${status.pid})${asked ? ` and does not listen on port ${options.listen}` : ""}.`,
        {
          remedy: "Run `viv down` first; sandboxes go on meanwhile.",
        },
      );
    }
    const token = status.listen === null ? null : await readToken(paths.token);
    if (json) return screen.json({ ...status, token });
    screen.print(`The server ${running === undefined ? "has started" : "runs"}: process ${status.pid}, state in ${status.home}.`);
    if (status.listen !== null) screen.print(`It listens on ${status.listen}. Token: ${token ?? `in ${paths.token}`}`);
  },
});
