/** The Jupyter of a sandbox: the machine's own, started inside on a Unix socket of its user, asked by HTTP. */
import { request, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import { z } from "zod";
import type { Command } from "../../base/schema/command.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { NOTEBOOK_SERVICE, type CodeContext } from "../../base/schema/notebook.ts";
import { shellWord } from "../../base/schema/shell-words.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Commands } from "../commands/commands.ts";
import type { Parts } from "../shared/parts.ts";
import type { LabFiles } from "./lab-files.ts";

const SOCKET = "/tmp/.viv-notebook.sock";
const RETRY_MS = 25;
/** Contexts are sessions below this name. */
const PREFIX = "viv/";
/** Beside the user's own folders, which may be read-only. JupyterLab's settings say that it asks no other machine for news. */
const LAB_SETTINGS = "/tmp/.viv-jupyter-lab/settings";
const ENVIRONMENT = {
  JUPYTER_RUNTIME_DIR: "/tmp/.viv-jupyter",
  JUPYTERLAB_SETTINGS_DIR: LAB_SETTINGS,
  JUPYTERLAB_WORKSPACES_DIR: "/tmp/.viv-jupyter-lab/workspaces",
  IPYTHONDIR: "/tmp/.viv-ipython",
  JUPYTER_PLATFORM_DIRS: "1",
};

const Session = z.object({
  id: z.string().max(100),
  path: z.string().max(1000),
  kernel: z.object({ id: z.uuid(), name: z.string().max(200), execution_state: z.string().max(100).default("unknown") }).nullable(),
});
type Session = z.infer<typeof Session>;

/** Whether Debian's Python has what serves the front end that Vivarium carries. To import it would take a second. */
const HAS_LAB_SERVER =
  "import importlib.util as u, sys; sys.exit(not all(u.find_spec(name) for name in ('jupyter_server', 'jupyterlab_server')))";
/** The folder is the first argument. It is no part of PYTHONPATH, because kernels inherit that. */
const CARRIED_LAB = "import sys; sys.path.insert(0, sys.argv.pop(1)); import vivarium_lab; vivarium_lab.main()";

/** The first of these that is there: JupyterLab, the front end that Vivarium carries, Jupyter's server without pages. */
function startLine(lab: string | undefined): string {
  const find = (program: string): string => `if command -v ${program} >/dev/null; then exec ${program} "$@"; fi;`;
  const python = "/usr/bin/python3";
  const carried =
    lab === undefined
      ? ""
      : `if command -v jupyter-server >/dev/null && ${python} -c ${shellWord(HAS_LAB_SERVER)} 2>/dev/null; then exec ${python} -c ${shellWord(CARRIED_LAB)} ${shellWord(lab)} "$@"; fi;`;
  return `${find("jupyter-lab")} ${carried} ${find("jupyter-server")} exit 127`;
}

/** The socket is the user's alone, so there is no password; callers are the server's, so there are no foreign pages to keep away. */
function programLine(row: SandboxRow, lab: string | undefined): string[] {
  const options = [
    `--ServerApp.sock=${SOCKET}`,
    "--ServerApp.token=",
    "--ServerApp.password=",
    "--ServerApp.disable_check_xsrf=True",
    "--ServerApp.open_browser=False",
    "--ServerApp.allow_root=True",
    "--KernelManager.transport=ipc",
    // The server bounds outputs itself, and tells how much it left out. Version 2 of Jupyter has other names for it.
    ...["ServerApp", "ZMQChannelsWebsocketConnection"].flatMap((part) =>
      ["data", "msg"].map((what) => `--${part}.iopub_${what}_rate_limit=1e10`),
    ),
    `--ServerApp.root_dir=${projectInside(row)}`,
    "--LabApp.extension_manager=readonly",
  ];
  const settings = `${LAB_SETTINGS}/@jupyterlab/apputils-extension`;
  const noNews = `mkdir -p ${settings} && echo '{"fetchNews":"false","checkForUpdates":false}' > ${settings}/notification.jupyterlab-settings; `;
  return ["/bin/sh", "-c", `${noNews}${startLine(lab)}`, "sh", ...options];
}

export class Jupyter {
  readonly #parts: Pick<Parts, "live" | "locks">;
  readonly #commands: Commands;
  readonly #lab: LabFiles;

  constructor(parts: Pick<Parts, "live" | "locks">, commands: Commands, lab: LabFiles) {
    this.#parts = parts;
    this.#commands = commands;
    this.#lab = lab;
  }

  /** Starts it, if it does not run. */
  async open(row: SandboxRow): Promise<void> {
    await this.#parts.locks.run(`notebook:${row.id}`, async () => {
      if ((await this.#find(row)) === undefined) await this.#start(row);
    });
  }

  async isOpen(row: SandboxRow): Promise<boolean> {
    return (await this.#find(row)) !== undefined;
  }

  /** The page of JupyterLab is part of what runs. */
  async requireLab(row: SandboxRow): Promise<void> {
    const connection = await this.dial(row);
    try {
      const { status } = await exchange(connection, "GET", "/lab", undefined);
      if (status === 200) return;
    } finally {
      connection.destroy();
    }
    throw new VivError("notebook_missing", "This machine has no JupyterLab.", {
      remedy: `Run \`apt install python3-jupyterlab-server\` or \`pip install jupyterlab\` on the machine, or inside the sandbox; then \`viv stop ${row.name}\`, \`viv start ${row.name}\`, and try again. Code runs without it: \`viv python ${row.name}\`.`,
    });
  }

  async contexts(row: SandboxRow): Promise<(CodeContext & { readonly session: string; readonly kernel: string })[]> {
    const sessions = z
      .array(Session)
      .max(LIMITS.maxContexts * 4)
      .parse(await this.#json(row, "GET", "/api/sessions"));
    return sessions.flatMap((session) => contextOf(session));
  }

  async makeContext(row: SandboxRow, name: string): Promise<void> {
    const path = `${PREFIX}${name}`;
    await this.#json(row, "POST", "/api/sessions", { path, name: path, type: "console", kernel: { name: "python3" } });
  }

  async removeContext(row: SandboxRow, session: string): Promise<void> {
    await this.#json(row, "DELETE", `/api/sessions/${encodeURIComponent(session)}`);
  }

  async tellKernel(row: SandboxRow, kernel: string, what: "interrupt" | "restart"): Promise<void> {
    await this.#json(row, "POST", `/api/kernels/${kernel}/${what}`, {});
  }

  /** The messages of a kernel. What a viewer of before with the same id did not hear comes first. */
  async channels(row: SandboxRow, kernel: string, viewer: string): Promise<WebSocket> {
    const connection = await this.dial(row);
    return new WebSocket(`ws://localhost/api/kernels/${kernel}/channels?session_id=${encodeURIComponent(viewer)}`, {
      createConnection: () => connection as never,
      // A dialled connection is paused, so that no bytes are lost before a listener is there.
      finishRequest: (asked) => asked.once("socket", () => connection.resume()).end(),
      maxPayload: LIMITS.maxKernelMessageBytes,
      perMessageDeflate: false,
      handshakeTimeout: LIMITS.notebookAnswerMs,
    });
  }

  async #find(row: SandboxRow): Promise<Command | undefined> {
    const running = await this.#commands.list(row, true);
    return running.find(({ service }) => service === NOTEBOOK_SERVICE);
  }

  async #start(row: SandboxRow): Promise<void> {
    const stream = await this.#commands.start(row, {
      command: programLine(row, await this.#lab.path()),
      service: NOTEBOOK_SERVICE,
      env: ENVIRONMENT,
    });
    stream.close();
    const over = new AbortController();
    const failed = stream.end.then(async ({ exitCode }) => {
      if (exitCode === 127) throw missing("Jupyter", "jupyter-server python3-ipykernel");
      const { stderr } = await this.#commands.result(row, stream.command.id);
      throw new VivError("notebook_failed", `Jupyter did not start in sandbox ${row.name}: ${stderr.trim().split("\n").at(-1) ?? ""}`);
    });
    try {
      await Promise.race([this.#answers(row, AbortSignal.any([over.signal, AbortSignal.timeout(LIMITS.notebookStartMs)])), failed]);
    } finally {
      over.abort();
      failed.catch(() => undefined);
    }
    const { kernelspecs } = z
      .object({ kernelspecs: z.record(z.string(), z.unknown()) })
      .parse(await this.#json(row, "GET", "/api/kernelspecs"));
    if (!Object.hasOwn(kernelspecs, "python3")) throw missing("kernel of Python for Jupyter", "python3-ipykernel");
  }

  async #answers(row: SandboxRow, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.#json(row, "GET", "/api/status");
        return;
      } catch (error) {
        if (!(error instanceof VivError) || error.code !== "port_unreachable") throw error;
      }
      await delay(RETRY_MS, undefined, { signal });
    }
  }

  dial(row: SandboxRow): Promise<Duplex> {
    const live = this.#parts.live.require(row);
    live.activeAt = performance.now();
    return live.walls.dial(SOCKET);
  }

  async #json(row: SandboxRow, method: string, path: string, body?: unknown): Promise<unknown> {
    const connection = await this.dial(row);
    try {
      const { status, text } = await exchange(connection, method, path, body === undefined ? undefined : JSON.stringify(body));
      if (status < 200 || status > 299)
        throw new VivError("notebook_failed", `Jupyter in sandbox ${row.name} answered with status ${status}.`);
      return text === "" ? null : JSON.parse(text);
    } catch (error) {
      if (error instanceof VivError) throw error;
      throw new VivError("notebook_failed", `Jupyter in sandbox ${row.name} gave no answer that can be used.`, { cause: error });
    } finally {
      connection.destroy();
    }
  }
}

function contextOf({ id, path, kernel }: Session): (CodeContext & { readonly session: string; readonly kernel: string })[] {
  if (kernel === null || !path.startsWith(PREFIX)) return [];
  return [{ name: path.slice(PREFIX.length), language: kernel.name, state: kernel.execution_state, session: id, kernel: kernel.id }];
}

function missing(what: string, packages: string): VivError {
  return new VivError("notebook_missing", `This machine has no ${what}.`, {
    remedy: `Run \`apt install ${packages}\` on the machine, then try again.`,
  });
}

async function exchange(
  connection: Duplex,
  method: string,
  path: string,
  body: string | undefined,
): Promise<{ status: number; text: string }> {
  const headers = {
    host: "localhost",
    ...(body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
  };
  const signal = AbortSignal.timeout(LIMITS.notebookAnswerMs);
  const asked = request({ method, path, headers, setHost: false, createConnection: () => connection, signal });
  asked.once("socket", () => connection.resume());
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once("response", resolve);
    asked.once("error", reject);
    asked.end(body);
  });
  let text = "";
  for await (const chunk of answer.setEncoding("utf8") as AsyncIterable<string>) {
    text += chunk;
    if (text.length > LIMITS.maxKernelMessageBytes) throw new Error("the answer is too long");
  }
  return { status: answer.statusCode ?? 0, text };
}
