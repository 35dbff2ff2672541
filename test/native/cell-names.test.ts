/** Names inside a sandbox, under the sanitizers: what the resolver in process 1 answers, and where dialled names lead. */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Mover } from "../../src/base/host/mover.ts";
import { CellProcess } from "../support/cell-process.ts";
import { sanitizedMover } from "../support/sanitized-mover.ts";
import { needs } from "../support/skip.ts";

/** Asks for A records through the resolver of the cell; prints addresses or the error. */
const ASK = `
  const { Resolver } = require("node:dns").promises;
  const resolver = new Resolver({ timeout: 2000, tries: 1 });
  resolver.setServers(["198.18.0.1"]);
  (async () => { for (const name of process.argv.slice(1)) console.log(await resolver.resolve4(name).then(String, (error) => error.code)); })();`;

/** Sends broken messages over UDP and TCP, then one that is right. */
const BREAK = `
  const { createSocket } = require("node:dgram");
  const { connect } = require("node:net");
  const good = Buffer.from("123401000001000000000000" + "07616c6c6f776564" + "047465737400" + "00010001", "hex");
  let seed = 7; const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31);
  const udp = createSocket("udp4"); let answers = 0;
  udp.on("message", () => (answers += 1));
  (async () => {
    for (let round = 0; round < 20000; round += 1) {
      const message = Buffer.from(good.subarray(0, random() % 3 ? good.length : random() % good.length));
      for (let change = 0; change < random() % 5; change += 1) if (message.length) message[random() % message.length] = random() % 256;
      udp.send(message, 53, "198.18.0.1");
      if (round % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const tcp = connect(53, "198.18.0.1");
    tcp.on("error", () => {});
    tcp.write(Buffer.concat([Buffer.from([0, good.length]), good, Buffer.from([0])]));
    tcp.write(Buffer.concat([Buffer.from([good.length]), good]));
    let got = Buffer.alloc(0);
    for await (const chunk of tcp) { got = Buffer.concat([got, chunk]); if (got.length >= 2 * (2 + good.length + 16)) break; }
    console.log(answers > 100, got.subarray(-4).join("."), got.length);
    udp.close();
  })();`;

const DIAL = `
  const { Resolver } = require("node:dns").promises;
  const resolver = new Resolver(); resolver.setServers(["198.18.0.1"]);
  resolver.resolve4("allowed.test").then(([host]) => {
    const socket = require("node:net").connect({ host: process.argv[1] || host, port: +process.argv[2] });
    socket.on("error", (error) => console.log(error.code));
    socket.on("data", (data) => process.stdout.write(data));
    socket.write("from inside");
  });`;

describe("names inside a sandbox", needs("linux", "root", "compiler"), () => {
  let cell: CellProcess;
  let mover: Mover;
  const warnings: string[] = [];
  const heard: string[] = [];
  /** Names that the server was asked for, and what it says of some of them; of the others, that they exist. */
  const asked: string[] = [];
  const known = new Map([
    ["missing.example", "-"],
    ["broken.example", "?"],
    ["slow.example", ""],
    ["odd.example", "HTTP/1.1 400 Bad Request"],
  ]);
  const ports = (): string => join(cell.run, "ports");

  beforeAll(async () => {
    cell = await new CellProcess().start("direct:egress.sock");
    mover = new Mover({ program: sanitizedMover(), log: { info: () => undefined, warn: (message) => void warnings.push(message) } });
    const take = (socket: Socket, preface: Buffer): void => {
      socket.on("error", () => undefined);
      let text = preface.toString("latin1");
      socket.on("data", (data) => {
        text += data.toString("latin1");
        if (text.startsWith("\x03")) {
          const name = text.slice(1, -1);
          asked.push(name);
          const answer = known.get(name) ?? "+";
          return answer === "" ? setTimeout(() => socket.end("?"), 500) : socket.end(answer);
        }
        if (!text.endsWith("inside")) return;
        heard.push(text);
        socket.end("from outside");
      });
    };
    await mover.open(join(cell.run, "egress.sock"), { take });
  }, 60_000);
  afterAll(async () => {
    await mover?.close();
    await cell?.remove();
    expect(cell?.complaints).toBe("");
    expect(warnings).toEqual([]);
  });

  const run = async (script: string, ...args: readonly string[]): Promise<string> => {
    const command = await cell.client.exec(cell.request([process.execPath, "-e", script, ...args]));
    let text = "";
    for await (const chunk of command.output) if (chunk.stream !== "gap") text += chunk.data.toString();
    await command.exit;
    return text.trim();
  };

  test("do not resolve where there is no network", async () => {
    rmSync(ports(), { force: true });
    expect(await run(ASK, "allowed.test", "localhost")).toBe("EREFUSED\n127.0.0.1");
  });

  test("each have an address of their own, the same every time", async () => {
    writeFileSync(ports(), "80 8443\n");
    const first = (await run(ASK, "allowed.test", "other.test", "ALLOWED.test", "a_b.allowed.test")).split("\n");
    expect(first).toEqual(["198.18.1.0", "198.18.1.1", "198.18.1.0", "198.18.1.2"]);
    expect(await run(ASK, "other.test")).toBe("198.18.1.1");
    for (const name of [`${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}`])
      expect(await run(ASK, name)).toMatch(/^198\.18\.1\./);
    for (const name of ["a b.test", "a@b.test", "a-.test"]) expect(await run(ASK, name), name).toMatch(/^(ENOTFOUND|EBADNAME|EBADQUERY)$/);
  });

  test("exist as far as the server says so, which is asked for all but the sandbox's own", async () => {
    asked.length = 0;
    const own = execFileSync("hostname", { encoding: "utf8" }).trim();
    const names = ["missing.example", "broken.example", "odd.example", "localhost", own, "below.localhost", "there.example"];
    const answers = (await run(ASK, ...names)).split("\n");
    expect(answers.slice(0, 5)).toEqual(["ENOTFOUND", "ESERVFAIL", "ESERVFAIL", "127.0.0.1", "127.0.0.1"]);
    expect(answers.slice(5).join()).toMatch(/^198\.18\.\d+\.\d+,198\.18\.\d+\.\d+$/);
    expect(asked).toEqual(["missing.example", "broken.example", "odd.example", "below.localhost", "there.example"]);
  });

  test("are answered while others wait, also where one connection asks for many", async () => {
    const crowd = `
      const { createSocket } = require("node:dgram");
      const { connect } = require("node:net");
      const question = (id, name) => Buffer.concat([Buffer.from([0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), ...name.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])), Buffer.from([0, 0, 1, 0, 1])]);
      const udp = createSocket("udp4"); const codes = {};
      udp.on("message", (message) => { codes[message[3] & 15] = (codes[message[3] & 15] ?? 0) + 1; });
      (async () => {
        for (let id = 0; id < 100; id += 1) udp.send(question(id, "slow.example"), 53, "198.18.0.1");
        const tcp = connect(53, "198.18.0.1");
        const all = ["missing.example", "there.example", "localhost", "missing.example"].map((name, id) => question(id, name)).flatMap((each) => [Buffer.from([0, each.length]), each]);
        tcp.write(Buffer.concat(all));
        const left = connect(53, "198.18.0.1", () => { const each = question(9, "slow.example"); left.write(Buffer.concat([Buffer.from([0, each.length]), each]), () => left.resetAndDestroy()); });
        let got = Buffer.alloc(0); const seen = [];
        for await (const chunk of tcp) {
          got = Buffer.concat([got, chunk]);
          while (got.length >= 2 && got.length >= 2 + got.readUInt16BE()) { seen.push(got[3] + ":" + (got[5] & 15)); got = got.subarray(2 + got.readUInt16BE()); }
          if (seen.length === 4) break;
        }
        console.log(seen.join(" "), codes[2] ?? 0);
        while (codes[2] !== 100) await new Promise((resolve) => udp.once("message", resolve));
        udp.close();
      })();`;
    expect(await run(crowd)).toBe("0:3 1:0 2:0 3:3 0");
    expect(await run(ASK, "missing.example", "there.example")).toMatch(/^ENOTFOUND\n198\.18\./);
  });

  test("lead to the proxy, which is told name and port", async () => {
    expect(await run(DIAL, "", "80")).toBe("from outside");
    expect(await run(DIAL, "", "8443")).toBe("from outside");
    expect(heard).toEqual(["\x02allowed.test:80\nfrom inside", "\x02allowed.test:8443\nfrom inside"]);
  });

  test("NW-01: an address that stands for no name, and a port that is not open, lead nowhere", async () => {
    heard.length = 0;
    for (const [host, port] of [
      ["198.18.200.1", "80"],
      ["127.0.0.1", "80"],
      ["198.19.255.255", "8443"],
      ["198.18.1.0", "22"],
    ] as const)
      expect(await run(DIAL, host, port), host).toMatch(/^(ECONNRESET|ECONNREFUSED|EPIPE)$/);
    expect(heard).toEqual([]);
  });

  test("broken questions do no harm", async () => {
    expect(await run(BREAK)).toMatch(/^true 198\.18\.1\.\d+ 96$/);
    expect(await run(ASK, "allowed.test")).toMatch(/^198\.18\.\d+\.\d+$/);
  });

  test("beyond the most, the oldest makes room", async () => {
    const many = `
      const { createSocket } = require("node:dgram");
      const udp = createSocket("udp4"); let answers = 0;
      const ask = (n) => { const label = String(n); udp.send(Buffer.concat([Buffer.from("12340100000100000000000" + "0", "hex"), Buffer.from([label.length]), Buffer.from(label), Buffer.from("047465737400" + "00010001", "hex")]), 53, "198.18.0.1"); };
      udp.on("message", () => { answers += 1; if (answers < 5000) ask(answers); else { console.log(answers); udp.close(); } });
      ask(0);`;
    expect(await run(many)).toBe("5000");
    expect(await run(ASK, "4999.test")).toMatch(/^198\.18\.\d+\.\d+$/);
  });
});
