/** The way out against the direct one: curl inside, through the cell and the proxy, and curl outside, from one server on loopback. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { pairCount, rested, round, series } from "./measure.ts";
import type { Group, Measured } from "./rows.ts";
import { BenchServer } from "./server.ts";

const BYTES = 100 * 1024 ** 2;
const CHUNK = Buffer.alloc(1024 ** 2, "x");
const SMALL_PAIRS = 60;
/** What curl measures itself: its own start is not the proxy's doing. */
const CURL = ["-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download} %{time_total}"];
const ADDRESS = "127.0.0.2";

export const proxyGroup: Group = {
  keys: ["proxy_ratio", "proxy_latency"],
  async measure({ quick, wanted, progress }) {
    const origin = createServer((request, response) => void answer(request.url === "/large" ? BYTES : 5, response)).listen(0, ADDRESS);
    await once(origin, "listening");
    const { port } = origin.address() as AddressInfo;
    const config = { network: { mode: "allow-list", private: [{ host: ADDRESS, ports: [port] }] } };
    try {
      return await BenchServer.with((server) => measureBoth(server, `http://${ADDRESS}:${port}`, { quick, wanted, progress }), config);
    } finally {
      close(origin);
    }
  },
};

async function measureBoth(
  server: BenchServer,
  url: string,
  { quick, wanted, progress }: Parameters<Group["measure"]>[0],
): Promise<Awaited<ReturnType<Group["measure"]>>> {
  const { id } = await server.create();
  const inside = (path: string, bytes: number) => async (): Promise<number> => {
    const { stdout, stderr } = await server.call("runCommand", { sandbox: id, command: ["curl", ...CURL, url + path] });
    return milliseconds(stdout, bytes, stderr);
  };
  const outside = (path: string, bytes: number) => async (): Promise<number> =>
    milliseconds((await promisify(execFile)("curl", [...CURL, "--noproxy", "*", url + path])).stdout, bytes, "");
  const rows: Record<string, Measured> = {};
  if (wanted.has("proxy_ratio")) {
    progress("proxy_ratio: 100 MiB");
    const [through, direct] = await pairs(quick ? 5 : 15, inside("/large", BYTES), outside("/large", BYTES));
    rows["proxy_ratio"] = { figure: round(direct.median / through.median), raw: { through, direct } };
  }
  if (wanted.has("proxy_latency")) {
    progress("proxy_latency: 5 bytes");
    const [through, direct] = await pairs(pairCount(quick, SMALL_PAIRS), inside("/small", 5), outside("/small", 5));
    rows["proxy_latency"] = { figure: round(through.median - direct.median), raw: { through, direct } };
  }
  return rows;
}

async function pairs(count: number, one: () => Promise<number>, other: () => Promise<number>) {
  const samples: [number[], number[]] = [[], []];
  for (let index = -2; index < count; index += 1) {
    const first = await rested(one);
    const second = await rested(other);
    if (index < 0) continue;
    samples[0].push(first);
    samples[1].push(second);
  }
  return [series(samples[0]), series(samples[1])] as const;
}

/** A transfer that failed, or fell short, would make a fine figure. */
function milliseconds(text: string, bytes: number, trouble: string): number {
  const [code, size, seconds] = text.split(" ").map(Number);
  if (code !== 200 || size !== bytes || seconds === undefined) throw new Error(`curl got ${text} ${trouble}`);
  return seconds * 1000;
}

async function answer(bytes: number, response: import("node:http").ServerResponse): Promise<void> {
  response.writeHead(200, { "content-length": bytes });
  for (let left = bytes; left > 0; left -= CHUNK.length)
    if (!response.write(left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left))) await once(response, "drain");
  response.end();
}

function close(server: Server): void {
  server.close();
  server.closeAllConnections();
}
