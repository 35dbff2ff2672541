/** A port inside, reached by `viv port`, against the same program reached directly outside. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { shellWord } from "../src/base/schema/shell-words.ts";
import { round } from "./measure.ts";
import type { Group } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { fetched, rounds } from "./transfer.ts";

const BYTES = 100 * 1024 ** 2;
const ROUNDS = 15;
const PORT = 8123;
const VIV = fileURLToPath(new URL("../bin/viv", import.meta.url));
/** Says its port, and answers every request with so many bytes. */
const PROGRAM = `
const chunk = Buffer.alloc(1024 ** 2, "x");
require("node:http").createServer(async (request, response) => {
  response.writeHead(200, { "content-length": ${BYTES} });
  for (let left = ${BYTES}; left > 0; left -= chunk.length)
    if (!response.write(chunk)) await require("node:events").once(response, "drain");
  response.end();
}).listen(Number(process.argv[1]), "127.0.0.1", function () { console.log(JSON.stringify({ local: this.address().port })); });
`;

export const portsGroup: Group = {
  keys: ["port_ratio"],
  async measure({ quick, progress }) {
    return BenchServer.with(async (server) => {
      const { id } = await server.create();
      await server.call("runCommand", { sandbox: id, command: [process.execPath, "-e", PROGRAM, String(PORT)], background: true });
      await server.sh(id, `until curl -s -o /dev/null ${shellWord(`http://127.0.0.1:${PORT}/`)}; do sleep 0.05; done`);
      const outside = await start(process.execPath, ["-e", PROGRAM, "0"]);
      const opened = await start(VIV, ["port", id, String(PORT), "0", "--json"], { ...process.env, ...server.env });
      try {
        progress("port_ratio: 100 MiB");
        const at = (port: number) => () => fetched(`http://127.0.0.1:${port}/`, BYTES);
        const [through, direct] = await rounds(quick ? 5 : ROUNDS, at(opened.port), at(outside.port));
        return { port_ratio: { figure: round(direct.median / through.median), raw: { through, direct } } };
      } finally {
        await Promise.all([outside.end(), opened.end()]);
      }
    });
  },
};

/** A program that prints the port at which it listens. */
async function start(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ readonly port: number; end(): Promise<void> }> {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const said = await Promise.race([firstLine(child.stdout), ended.then(() => undefined)]);
  if (said === undefined) throw new Error(`${program} ${args[0] ?? ""} ended`);
  return {
    port: (JSON.parse(said) as { local: number }).local,
    end: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** `viv --json` prints an object of several lines. */
async function firstLine(output: Readable): Promise<string> {
  let text = "";
  for await (const line of createInterface({ input: output })) {
    text += line;
    if (line.endsWith("}")) break;
  }
  return text;
}
