import { createServer, type Server, type Socket } from "node:net";
import { VivError } from "../../schema/errors.ts";
import type { Client } from "../../client/client.ts";
import { command } from "../command.ts";
import type { Screen } from "../screen.ts";
import { clean } from "../text.ts";
import { parsePort } from "../values.ts";

async function tunnel(client: Client, sandbox: string, port: number, local: Socket, screen: Screen): Promise<void> {
  local.on("error", () => local.destroy());
  try {
    const inside = await client.dial(sandbox, port);
    inside.on("error", () => local.destroy());
    local.on("close", () => inside.destroy());
    inside.on("close", () => local.destroy());
    local.pipe(inside).pipe(local);
    local.resume();
  } catch (error) {
    screen.say(`viv: a connection failed: ${clean(VivError.from(error).message)}`);
    local.destroy();
  }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "is taken" : `can't be opened (${error.code ?? error.message})`;
      reject(
        new VivError("busy", `Local port ${port} ${why}.`, { cause: error, remedy: "Choose another local port, or 0 for any free one." }),
      );
    });
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}

export default command({
  name: "port",
  summary: "Open a local port that leads to a port inside a sandbox",
  details: "Listens on 127.0.0.1 until ctrl-C. With --json the address is printed once, as soon as it listens.",
  examples: [
    ["viv port try 3000", "http://127.0.0.1:3000 is port 3000 inside"],
    ["viv port try 3000 8080", "local port 8080 leads to 3000 inside"],
    ["viv port try 5432 0", "any free local port; it is printed"],
  ],
  options: {},
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    { name: "PORT", summary: "Port inside" },
    { name: "LOCAL", summary: "Local port; the same number if left out, 0 for any free one", optional: true },
  ],
  async run({ positionals: [name = "", inside = "", local = inside], json, screen, client }) {
    const port = parsePort("PORT", inside);
    const wanted = local === "0" ? 0 : parsePort("LOCAL", local);
    const server = await client();
    const sandbox = await server.call("inspectSandbox", { sandbox: name });
    const listener = createServer(
      { allowHalfOpen: true, pauseOnConnect: true },
      (socket) => void tunnel(server, sandbox.id, port, socket, screen),
    );
    const open = await listen(listener, wanted);
    if (json) screen.json({ sandbox: sandbox.id, port, local: open, address: `127.0.0.1:${open}` });
    else screen.print(`127.0.0.1:${open} leads to port ${port} in ${sandbox.name}. Ctrl-C ends it.`);
    return new Promise<number>((resolve) => {
      const stop = (): void => {
        listener.close();
        resolve(0);
        // Connections that are open would keep the process; the user asked it to end.
        setImmediate(() => process.exit(0));
      };
      process.once("SIGINT", stop);
      process.once("SIGTERM", stop);
    });
  },
});
