import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { resolve as wholePath } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { listenChoice, type ListenChoice, type ListenWords } from "../../../base/config/listen-choice.ts";
import { findPaths, preparePaths, type Environment } from "../../../base/config/paths.ts";
import type { ServerStatus } from "../../../base/schema/server.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { command } from "../command.ts";
import { connectIfRunning } from "../connect.ts";
import { serverCommand, serverEnvironment, startServer } from "../start.ts";
import { clean } from "../text.ts";

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

type Options = Readonly<Record<"listen" | "tls-cert" | "tls-key" | "behind-proxy" | "url" | "previews", string | undefined>> & {
  readonly "self-signed": boolean;
};

/** Files by their whole path: the server works in another folder. */
function wordsOf(options: Options): ListenWords {
  const file = (name: "tls-cert" | "tls-key"): string | undefined => (options[name] === undefined ? undefined : wholePath(options[name]));
  return {
    address: options.listen,
    cert: file("tls-cert"),
    key: file("tls-key"),
    selfSigned: options["self-signed"],
    behindProxy: options["behind-proxy"],
    url: options.url,
    previews: options.previews,
  };
}

function flagsOf(options: Options): string[] {
  const { address, cert, key, selfSigned, behindProxy, url, previews } = wordsOf(options);
  const given = { listen: address, "tls-cert": cert, "tls-key": key, "behind-proxy": behindProxy, url, previews };
  const texts = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  return selfSigned === true ? [...texts, "--self-signed"] : texts;
}

/** A server that runs already is left as it is. */
function requireSame({ pid, access }: ServerStatus, choice: ListenChoice | undefined, foreground: boolean): void {
  const tls = choice === undefined ? undefined : typeof choice.tls === "string" ? choice.tls : "certificate";
  const other = choice !== undefined && (access?.tls !== tls || !(access?.address ?? "").endsWith(`${choice.host}:${choice.port}`));
  if (!foreground && !other) return;
  const where = other ? ` and does not listen on ${choice.host}:${choice.port} in this way` : "";
  throw new VivError("server_running", `A server already runs (process ${pid})${where}.`, {
    remedy: "Run `viv down` first; sandboxes go on meanwhile.",
  });
}

/** What is open, to which computers, and what protects it. */
function accessLines({ listen, access }: ServerStatus, token: string): string[] {
  if (listen === null || access === null) return [];
  const lines = [`It listens on ${listen}. Token: ${token}`];
  if (access.from === "this machine" && access.tls === "none") return lines;
  const reach = access.from === "this machine" ? "programs of this machine" : `every computer that reaches ${access.address}`;
  lines.push(
    `Open to ${reach}: the pages of the dashboard, without data; all else for the token, or a browser that a link of \`viv open\` logged in.`,
  );
  if (access.tls === "proxy") lines.push(`TLS is done by what stands in front at ${listen}; requests by any other name are refused.`);
  else
    lines.push(
      `Certificate: ${access.fingerprint ?? ""} (SHA-256)${access.tls === "self-signed" ? "; compare it when the browser warns." : "."}`,
    );
  if (access.previews !== null)
    lines.push(`Ports that are opened as previews show at ${access.previews}, for browsers that a link of \`viv port --open\` let in.`);
  return lines;
}

export default command({
  name: "up",
  summary: "Start the server",
  details:
    "Other commands start it by themselves; this one is for a TCP port or for watching it. Callers by TCP need the token in the state folder's `token` file, or a browser that a link of `viv open` has logged in. A port alone is on 127.0.0.1. Any address that other computers reach needs TLS: your certificate, one that the server makes (compare its fingerprint when the browser warns), or a tunnel or proxy in front that does it. State is in $VIV_HOME, else /var/lib/vivarium for root and ~/.local/state/vivarium for others.",
  examples: [
    ["viv up", "start it if it does not run"],
    ["viv up --listen 7777", "answer on 127.0.0.1:7777, too, to those who have the token"],
    ["viv up --listen 0.0.0.0:7411 --self-signed", "reach the dashboard from a phone in the same network"],
    ["viv up --listen 0.0.0.0:443 --tls-cert c.pem --tls-key k.pem", "with a certificate of yours"],
    ["viv up --listen 7411 --behind-proxy https://viv.example.com", "a tunnel or proxy on this machine does TLS"],
    ["viv up --foreground", "stay attached and see its log"],
  ],
  options: {
    listen: { type: "text", value: "[ADDRESS:]PORT", summary: "Listen on this port, too; of 127.0.0.1 if there is no address" },
    "tls-cert": { type: "text", value: "FILE", summary: "Certificate (PEM) for TLS" },
    "tls-key": { type: "text", value: "FILE", summary: "Its key (PEM)" },
    "self-signed": { type: "flag", summary: "TLS with a certificate that the server makes" },
    "behind-proxy": { type: "text", value: "URL", summary: "A tunnel or proxy does TLS, and browsers use this address" },
    url: { type: "text", value: "URL", summary: "Address that browsers use, where it is not that of the certificate" },
    previews: { type: "text", value: "URL", summary: "With TLS: addresses of previews of ports, such as https://*.preview.example.com" },
    foreground: { type: "flag", short: "f", summary: "Run in the foreground until ctrl-C" },
  },
  positionals: [],
  async run({ options, json, screen, env }) {
    const choice = listenChoice(wordsOf(options));
    const flags = flagsOf(options);
    const running = await connectIfRunning(env);
    if (running === undefined && options.foreground) return runInForeground(flags, env);
    const paths = findPaths(env);
    const report = (line: string): void => screen.say(`  server: ${clean(line)}`);
    if (running === undefined) await screen.during("Starting the server", startServer(paths, { flags, env, report }));
    const client = running ?? (await connectIfRunning(env));
    if (client === undefined) throw new VivError("server_unreachable", "The server ended right after it started.");
    const status = await client.call("status", {});
    client.close();
    if (running !== undefined) requireSame(status, choice, options.foreground);
    const token = status.listen === null ? null : await readToken(paths.token);
    if (json) return screen.json({ ...status, token });
    screen.print(`The server ${running === undefined ? "has started" : "runs"}: process ${status.pid}, state in ${status.home}.`);
    for (const line of accessLines(status, token ?? `in ${paths.token}`)) screen.print(line);
  },
});
