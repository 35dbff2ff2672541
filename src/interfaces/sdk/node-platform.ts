/** The machine around a program in Node, and the way to its server. */
import { resolve } from "node:path";
import { callerEnvironment, type Environment } from "../../base/config/caller.ts";
import { VIV } from "../../base/config/machine.ts";
import { findPaths } from "../../base/config/paths.ts";
import { errorOf } from "../client/transport.ts";
import { Client } from "../client/client.ts";
import { isListening } from "../client/listening.ts";
import { VivariumError } from "./error.ts";
import type { Machine, Platform } from "./platform.ts";

/** Where the server is. */
export interface Where {
  /** Address of a server that listens on TCP, such as http://127.0.0.1:7777. */
  readonly url?: string | undefined;
  /** Its token, as `viv up --listen` prints it. */
  readonly token?: string | undefined;
  /** State folder of the server of this machine; VIV_HOME, or that of this user if left out. */
  readonly home?: string | undefined;
  /** Whether the server of this machine is started when it does not run; true if left out. */
  readonly start?: boolean | undefined;
}

export function nodePlatform(where: Where & { readonly approver?: string | undefined }): Platform {
  const own = callerEnvironment();
  const approver = where.approver ?? own["VIV_APPROVER_TOKEN"];
  const env = where.home === undefined ? own : { ...own, VIV_HOME: resolve(where.home) };
  let client: Client | undefined;
  const connect = async (): Promise<Client> => (client = where.url === undefined ? await local(env, where) : remote(where.url, where));
  const machine = machineOf(async () => client ?? connect());
  // A server at another address may be on another machine, where paths and users of this one mean nothing.
  const caller =
    where.url === undefined
      ? { project: (path = ".") => resolve(path), env: own, user: String(process.getuid?.() ?? 0) }
      : { project: (path: string | undefined) => path };
  return { connect, caller, machine, approver };
}

function remote(url: string, { token }: Where): Client {
  if (token === undefined) {
    throw new VivariumError("unauthorized", "A server at an address wants its token.", {
      remedy: "Give it: `new Vivarium({ url, token })`; `viv up --listen` prints it.",
    });
  }
  return new Client({ url, token });
}

async function local(env: Environment, { start = true }: Where): Promise<Client> {
  const { socket } = findPaths(env);
  if (!(await isListening(socket))) {
    if (!start || env["VIV_NO_START"]) {
      throw new VivariumError("server_unreachable", "No server runs, and this program must not start one.");
    }
    await startServer(env);
  }
  return new Client({ socket });
}

/** By the command line, which starts it on the Node that it was made for, and once, however many programs ask for it. */
async function startServer(env: Environment): Promise<void> {
  // Most programs find a server, and this takes long to load.
  const { spawn } = await import("node:child_process");
  return new Promise((done, reject) => {
    const child = spawn(VIV, ["up", "--json"], { env: { ...env }, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-65_536)));
    child.once("error", (error) => reject(new VivariumError("server_unreachable", `${VIV} can't be run: ${error.message}.`)));
    child.once("close", (code) => (code === 0 ? done() : reject(failure(said))));
  });
}

/** The last line is the error, as JSON. */
function failure(said: string): VivariumError {
  const lines = said.trim().split("\n");
  const told = lines.at(-1) ?? "";
  if (told.startsWith("{")) return errorOf(told, 0);
  return new VivariumError("server_unreachable", `The server did not start: ${told}`, {
    remedy: "Run `viv up --foreground` to see it start.",
  });
}

/** What few programs use is loaded when it is used. */
function machineOf(connected: () => Promise<Client>): Machine {
  return {
    async upload(source, to, signal) {
      const { upload } = await import("../client/copy/transfer.ts");
      return upload(await connected(), source, to, signal);
    },
    async download(from, target, signal) {
      const { download } = await import("../client/copy/transfer.ts");
      return download(await connected(), from, resolve(target), signal);
    },
    async listen(sandbox, port, wanted) {
      const { openPort } = await import("../client/local-port.ts");
      const client = await connected();
      const opened = await openPort(client, { sandbox, port }, wanted, () => undefined);
      const use = new AbortController();
      void holdInUse(client, sandbox, port, use.signal);
      const close = (): Promise<void> => {
        use.abort();
        return opened.close();
      };
      return { port: opened.port, close };
    },
  };
}

/** An open port is a use: the sandbox does not become idle meanwhile. */
async function holdInUse(client: Client, sandbox: string, port: number, signal: AbortSignal): Promise<void> {
  try {
    const { newest } = await client.call("listEvents", { limit: 1 }, signal);
    for await (const event of client.events(newest, { sandbox, uses: sandbox, as: `port ${port}`, signal })) void event;
  } catch {
    // Without the server there is no port to hold; a connection through it says so.
  }
}
