/** Fuzzing of the proxy: broken heads, tunnels and greetings. It never hangs, never falls, and never dials what the rules refuse. */
import { once } from "node:events";
import { connect as connectTls } from "node:tls";
import { duplexPair } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { ProxyLab, type Origin } from "../support/proxy-lab.ts";
import { eventually } from "../support/server.ts";

/** Longer runs: VIV_FUZZ_MS=600000. The same run again: VIV_FUZZ_SEED of the failure. */
const FUZZ_MS = Number(process.env["VIV_FUZZ_MS"] ?? 4_000);
const SEED = Number(process.env["VIV_FUZZ_SEED"] ?? Date.now() % 2 ** 31);
const AT_ONCE = 128;
const PATIENCE_MS = 10_000;

describe(`bytes of all kinds (seed ${SEED})`, () => {
  const lab = new ProxyLab();
  const before = { ...LIMITS };
  let web: Origin;
  let secure: Origin;
  let evil: Origin;
  let hello: Buffer;
  let state = SEED;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
  const pick = <T>(all: readonly T[]): T => all[random(all.length)] as T;

  beforeAll(async () => {
    Object.assign(LIMITS, { egressHeadMs: 200, egressIdleMs: 400, egressRequests: 1_000_000_000, egressDialMs: 1_000 });
    web = await lab.web("127.0.0.2");
    secure = await lab.tls("127.0.0.2", "allowed.test");
    evil = await lab.tcp("127.0.0.3");
    lab.names.set("allowed.test", ["127.0.0.2"]);
    lab.names.set("evil.test", ["127.0.0.3"]);
    lab.opened.push({ host: "allowed.test", ports: [web.port, secure.port], tcp: false });
    hello = await helloOf("allowed.test");
    await lab.set({});
  });
  afterAll(() => {
    Object.assign(LIMITS, before);
    lab.close();
  });

  /** What a real client greets with. */
  async function helloOf(servername: string): Promise<Buffer> {
    const [near, far] = duplexPair();
    const client = connectTls({ socket: near, servername });
    client.on("error", () => undefined);
    const [first] = (await once(far, "data")) as [Buffer];
    client.destroy();
    return first;
  }

  const bytes = (...parts: readonly (string | Buffer | number[])[]): Buffer =>
    Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))));
  const two = (port: number): number[] => [port >> 8, port & 255];

  /** Requests that are fine as they are, and what comes of them. */
  function corpus(): [request: Buffer, answer: string][] {
    const at = `allowed.test:${web.port}`;
    const tunnel = `CONNECT allowed.test:${secure.port} HTTP/1.1\r\nHost: allowed.test:${secure.port}\r\n\r\n`;
    const socks = bytes([5, 1, 0], [5, 1, 0, 3, 12], "allowed.test", two(secure.port));
    const greeted = "\x16\x03";
    return [
      [bytes(`GET http://${at}/a?b=c HTTP/1.1\r\nHost: ${at}\r\nAccept: */*\r\nConnection: close\r\n\r\n`), "HTTP/1.1 200 "],
      [bytes(`POST http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello`), "HTTP/1.1 200 "],
      [bytes(`PUT http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`), "HTTP/1.1 200 "],
      [bytes(tunnel, hello), greeted],
      [bytes(socks, hello), greeted],
      [bytes(`\x02allowed.test:${secure.port}\n`, hello), greeted],
      [bytes(`\x02${at}\nGET / HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`), "HTTP/1.1 200 "],
      [bytes(`GET http://evil.test:${evil.port}/ HTTP/1.1\r\nHost: evil.test:${evil.port}\r\n\r\n`), "HTTP/1.1 403 "],
      [bytes(`CONNECT 127.0.0.3:${evil.port} HTTP/1.1\r\nHost: x\r\n\r\n`, hello), "HTTP/1.1 403 "],
      [bytes([5, 1, 0], [5, 1, 0, 1, 127, 0, 0, 3], two(evil.port), hello), "\x05\x00\x05\x02"],
      [bytes([5, 1, 0], [5, 1, 0, 4, ...Array.from({ length: 10 }, () => 0), 255, 255, 127, 0, 0, 3], two(evil.port)), "\x05\x00\x05\x02"],
      [bytes("\x03allowed.test\n"), "+"],
      [bytes("\x03evil.test\n"), "-"],
    ];
  }

  function mutated(seed: Buffer, others: readonly Buffer[]): Buffer {
    const tokens = [
      "\r\n",
      "\n",
      "\0",
      " ",
      "\r\n\r\n",
      `evil.test:${evil.port}`,
      `127.0.0.3:${evil.port}`,
      `Host: evil.test:${evil.port}\r\n`,
      `http://evil.test:${evil.port}/`,
      "@",
      "%00",
      "Content-Length: 0\r\n",
      "Transfer-Encoding: chunked\r\n",
      "Connection: Host, Content-Length\r\n",
      "Upgrade: websocket\r\n",
      "ffffffffffffffff",
      "0\r\n\r\n",
      "[::ffff:127.0.0.3]",
      "\xff\xff\xff\xff",
    ];
    let data: Buffer = Buffer.from(seed);
    for (let change = 0; change <= random(4); change += 1) {
      const at = random(data.length + 1);
      const kind = random(6);
      if (kind === 0 && data.length > 0) data[at % data.length] = random(256);
      else if (kind === 1) data = data.subarray(0, at);
      else if (kind === 2) data = bytes(data.subarray(0, at), pick(tokens), data.subarray(at));
      else if (kind === 3) data = bytes(data.subarray(0, at), data.subarray(at + random(20)));
      else if (kind === 4) data = bytes(data.subarray(0, at), pick(others).subarray(random(200)));
      else data = bytes(data.subarray(0, at), data.subarray(Math.max(0, at - random(60))));
    }
    return data;
  }

  /** What comes back, in any pieces; undefined if the connection is not ended in time. */
  async function say(data: Buffer, pieces: number, ends: boolean): Promise<string | undefined> {
    const socket = lab.dial();
    let answer = "";
    socket.on("data", (chunk) => (answer += chunk.toString("latin1")));
    const closed = new Promise<string>((resolve) => socket.once("close", () => resolve(answer)));
    for (let piece = 0; piece < pieces; piece += 1) {
      socket.write(data.subarray(Math.floor((data.length * piece) / pieces), Math.floor((data.length * (piece + 1)) / pieces)));
      if (pieces > 1) await new Promise((resolve) => setImmediate(resolve));
    }
    if (ends) socket.end();
    const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), PATIENCE_MS).unref());
    const result = await Promise.race([closed, late]);
    socket.destroy();
    return result;
  }

  test("the control: unbroken they get what they ask for, and without the rules the refused server answers", async () => {
    for (const [request, answer] of corpus()) expect(await say(request, 1, false), request.toString("latin1")).toContain(answer);
    for (const pieces of [2, 7, 40]) expect(await say(corpus()[3]?.[0] ?? Buffer.alloc(0), pieces, false)).toContain("\x16\x03");
    expect(evil.heard).toEqual([]);
    lab.opened.push({ host: "127.0.0.3", ports: [evil.port], tcp: true });
    await say(corpus()[8]?.[0] ?? Buffer.alloc(0), 1, false);
    expect(evil.heard).not.toEqual([]);
    lab.opened.pop();
    evil.heard.length = 0;
    await eventually(
      () => lab.records.at(-1)?.ended,
      (ended) => ended !== undefined,
    );
  });

  test(
    "broken they are answered or cut off in time, nothing that is refused is dialled or asked for, and nothing is smuggled",
    async () => {
      lab.records.length = lab.asked.length = web.heard.length = 0;
      const seeds = corpus().map(([request]) => request);
      const until = performance.now() + FUZZ_MS;
      let said = 0;
      while (performance.now() < until) {
        const round = Array.from({ length: AT_ONCE }, () => mutated(pick(seeds), seeds));
        const answers = await Promise.all(round.map((data) => say(data, 1 + random(4), random(2) === 0)));
        const hung = answers.indexOf(undefined);
        expect(hung, `hangs: ${JSON.stringify(round[hung]?.toString("latin1"))}`).toBe(-1);
        said += round.length;
      }
      expect(said).toBeGreaterThan(AT_ONCE);
      expect(evil.heard).toEqual([]);
      expect(lab.asked.filter((name) => name !== "allowed.test")).toEqual([]);
      const dialled = lab.records.filter(({ verdict }) => verdict === "allow");
      expect(dialled.filter(({ host, port }) => host !== "allowed.test" || ![web.port, secure.port].includes(port))).toEqual([]);
      // What arrived was decided on: each request has a record, and names the host it was decided for.
      // In a connection that leads to one host its port may be left out.
      const names = [`allowed.test:${web.port}`, "allowed.test"];
      // The case of letters makes no other host.
      expect(web.heard.filter((line) => !names.includes((line.split(" ")[2] ?? "").toLowerCase()))).toEqual([]);
      const permitted = dialled.filter(({ protocol, port, ended }) => protocol === "http" && port === web.port && ended === undefined);
      expect(web.heard.length).toBeLessThanOrEqual(permitted.length);
      await eventually(
        () => lab.egress.use("one").connections,
        (count) => count === 0,
      );
      expect(await say(seeds[0] ?? Buffer.alloc(0), 1, false)).toMatch(/^HTTP\/1.1 200 /);
    },
    FUZZ_MS + 60_000,
  );
});
