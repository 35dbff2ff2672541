/** The way out against the direct one: curl inside, through the cell and the proxy, and curl outside, from one server on loopback. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { pairCount, round } from "./measure.ts";
import type { Group, Measured } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { CURL, fetched, milliseconds, rounds, WARM_UP } from "./transfer.ts";

const BYTES = 100 * 1024 ** 2;
const CHUNK = Buffer.alloc(1024 ** 2, "x");
const SMALL_PAIRS = 60;
const ADDRESS = "127.0.0.2";
const TICKS_PER_S = 100;

export const proxyGroup: Group = {
  keys: ["proxy_ratio", "proxy_latency"],
  async measure({ quick, wanted, progress }) {
    const origin = createServer((request, response) => void answer(request.url === "/large" ? BYTES : 5, response)).listen(0, ADDRESS);
    await once(origin, "listening");
    const { port } = origin.address() as AddressInfo;
    // A tunnel may carry any protocol there, so that the same page can be fetched through one.
    const config = { network: { mode: "allow-list", private: [{ host: ADDRESS, ports: [port], tcp: true }] } };
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
  const inside =
    (path: string, bytes: number, ...how: readonly string[]) =>
    async (): Promise<number> => {
      const { stdout, stderr } = await server.call("runCommand", { sandbox: id, command: ["curl", ...CURL, ...how, url + path] });
      return milliseconds(stdout, bytes, stderr);
    };
  const outside = (path: string, bytes: number) => () => fetched(url + path, bytes);
  const rows: Record<string, Measured> = {};
  if (wanted.has("proxy_ratio")) {
    progress("proxy_ratio: 100 MiB");
    const spent = { http: 0, tunnel: 0 };
    const counted = (kind: keyof typeof spent, sample: () => Promise<number>) => async (): Promise<number> => {
      const before = cpuSeconds(server.pid);
      const taken = await sample();
      spent[kind] += cpuSeconds(server.pid) - before;
      return taken;
    };
    const count = quick ? 5 : 15;
    const [http, tunnel, direct] = await rounds(
      count,
      counted("http", inside("/large", BYTES)),
      counted("tunnel", inside("/large", BYTES, "--proxytunnel")),
      outside("/large", BYTES),
    );
    const ratios = { http: round(direct.median / http.median), tunnel: round(direct.median / tunnel.median) };
    const perGb = (seconds: number): number => round(seconds / ((count + WARM_UP) * BYTES * 1e-9));
    rows["proxy_ratio"] = {
      figure: Math.min(ratios.http, ratios.tunnel),
      raw: { http, tunnel, direct },
      more: { ...ratios, http_server_cpu_s_per_gb: perGb(spent.http), tunnel_server_cpu_s_per_gb: perGb(spent.tunnel) },
    };
  }
  if (wanted.has("proxy_latency")) {
    progress("proxy_latency: 5 bytes");
    const [through, tunnel, direct] = await rounds(
      pairCount(quick, SMALL_PAIRS),
      inside("/small", 5),
      inside("/small", 5, "--proxytunnel"),
      outside("/small", 5),
    );
    const added = { http: round(through.median - direct.median), tunnel: round(tunnel.median - direct.median) };
    rows["proxy_latency"] = { figure: added.http, raw: { through, tunnel, direct }, more: added };
  }
  return rows;
}

/** Processor time of the server's own process. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S;
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
