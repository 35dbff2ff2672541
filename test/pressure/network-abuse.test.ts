/** Attacks on the proxy by a sandbox or a hostile host, each against the proxy itself. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer as createTcp, type Socket } from "node:net";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Approvals } from "../../src/rules/approvals/approvals.ts";
import { Ledger } from "../../src/rules/effects/ledger.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { BoundHost } from "../support/bound-host.ts";
import { ProxyLab } from "../support/proxy-lab.ts";
import { aSandboxRow } from "../support/rows.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const get = (at: string, path = "/"): string => `GET http://${at}${path} HTTP/1.1\r\nHost: ${at}\r\n\r\n`;

/** What a client adds to its CONNECT, so that one part or the other of the proxy carries the tunnel. */
const TUNNELS = [
  ["the mover", ""],
  ["the server", "Expect: nothing\r\n"],
] as const;

/** Connections of this machine to a port that have no answer yet. */
function dialling(port: number): number {
  const SYN_SENT = "02";
  const lines = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
  const fields = lines.map((line) => line.trim().split(/\s+/));
  return fields.filter(([, , to = "", state]) => state === SYN_SENT && Number.parseInt(to.split(":")[1] ?? "", 16) === port).length;
}

describe("a sandbox against the server", () => {
  let lab: ProxyLab;

  beforeEach(async () => {
    lab = new ProxyLab();
    await lab.set({});
  });
  afterEach(() => lab.close());

  /** A name of a host at this port of 127.0.0.2. */
  function name(host: string, port: number): string {
    lab.names.set(host, ["127.0.0.2"]);
    lab.opened.push({ host, ports: [port], tcp: false });
    return `${host}:${port}`;
  }

  test("PX-14: requests that are sent without waiting for answers do not make more connections than there are clients", async () => {
    let open = 0;
    let most = 0;
    const silent = createTcp((socket) => {
      most = Math.max(most, (open += 1));
      socket.on("error", () => undefined).on("close", () => (open -= 1));
      socket.once("data", () => setTimeout(() => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), 20));
    });
    const at = name("slow.test", await lab.listen(silent, "127.0.0.2"));
    const client = lab.dial();
    let answered = "";
    client.on("data", (chunk) => (answered += chunk.toString("latin1")));
    client.write(get(at).repeat(12));
    await eventually(
      async () => answered.split("200 OK").length - 1,
      (answers) => answers === 12,
    );
    client.destroy();
    // The end of one and the beginning of the next may meet.
    expect(most).toBeLessThanOrEqual(3);
    const flood = lab.dial();
    flood.write(get(at).repeat(2_000));
    await new Promise((resolve) => flood.once("close", resolve));
    expect(most).toBeLessThanOrEqual(3);
  });

  test.each(TUNNELS)(
    "PX-14: a policy that can't be asked while a tunnel of %s is silent ends the tunnel, and not the server",
    async (_, header) => {
      const { port } = await lab.tcp("127.0.0.2");
      const at = name("quiet.test", port);
      const unhandled: unknown[] = [];
      const hear = (error: unknown): void => void unhandled.push(error);
      process.on("unhandledRejection", hear);
      try {
        const client = lab.dial();
        client.write(`CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n${header}\r\n`);
        await once(client, "data");
        const closed = once(client, "close");
        lab.standing = async () => Promise.reject(new Error("the store is locked"));
        await new Promise((resolve) => setTimeout(resolve, LIMITS.egressWatchMs + 100));
        // The mover's may have ended by now.
        client.write("no TLS, but enough to be told from it");
        await closed;
        expect(unhandled).toEqual([]);
      } finally {
        process.removeListener("unhandledRejection", hear);
      }
    },
  );

  test("PX-14: names without an answer hold up the sandbox that asks for them, and no other", async () => {
    const web = await lab.web("127.0.0.2");
    const at = name("web.test", web.port);
    await lab.set({ mode: "public" });
    await lab.set({ mode: "public" }, "two");
    let waiting = 0;
    const never = Promise.withResolvers<readonly string[]>();
    for (let index = 0; index < 40; index += 1)
      lab.names.set(`never${index}.example`, () => {
        waiting += 1;
        return never.promise as never;
      });
    const clients = Array.from({ length: 40 }, (_, index) => {
      const client = lab.dial();
      client.write(get(`never${index}.example`));
      return client;
    });
    await eventually(
      async () => waiting,
      (count) => count >= 4,
    );
    const other = lab.dial("two");
    other.write(get(at));
    expect(String((await once(other, "data"))[0])).toMatch(/^HTTP\/1.1 200 /);
    other.destroy();
    expect(waiting).toBeLessThanOrEqual(LIMITS.egressResolving);
    for (const client of clients) client.destroy();
    never.resolve([]);
  });

  test("PX-09: an answer with two lengths does not leave bytes that the client takes for the next answer", async () => {
    const inner = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    const liar = createTcp((socket) => {
      socket.on("error", () => undefined);
      const body = `hello${inner}`;
      socket.once("data", () =>
        socket.end(
          `HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
        ),
      );
    });
    const at = name("liar.test", await lab.listen(liar, "127.0.0.2"));
    const client = lab.dial();
    client.write(get(at));
    let text = "";
    client.on("data", (chunk) => (text += chunk.toString("latin1")));
    await eventually(
      async () => text,
      (said) => said.includes("forged"),
    );
    client.destroy();
    expect(text).not.toMatch(/content-length: 5\r\n/i);
    expect(text).toMatch(/transfer-encoding: chunked/i);
  });

  test("NW-03: a public address that this machine gets while the request is recorded is not dialled", async () => {
    await lab.set({ mode: "public" });
    lab.recorded = ({ verdict }) => verdict === "allow" && (lab.ownAddresses = ["93.184.215.14"]);
    const host = "93.184.215.14";
    const said = await lab.say(`GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    lab.recorded = () => undefined;
    lab.ownAddresses = [];
    expect(said).toMatch(/^HTTP\/1.1 403 .*private_address/s);
    expect(lab.records.map(({ verdict }) => verdict)).toEqual(["allow", "deny"]);
  });

  test("NW-03: a public address of this machine is no way to what listens on it", async () => {
    await lab.set({ mode: "public" });
    lab.names.set("mine.example", ["93.184.215.14"]);
    lab.ownAddresses.push("93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c");
    for (const host of ["mine.example", "93.184.215.14", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]", "[::ffff:93.184.215.14]"]) {
      const said = await lab.say(`GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(said, host).toMatch(/^HTTP\/1.1 403 .*private_address/s);
    }
    expect(lab.records.filter(({ verdict }) => verdict === "allow")).toEqual([]);
    // The same address is fine where it belongs to another sandbox.
    lab.ownAddresses = [];
    const client = lab.dial();
    client.write(get("mine.example"));
    await eventually(
      async () => lab.records.some(({ verdict, host }) => verdict === "allow" && host === "mine.example"),
      (allowed) => allowed,
    );
    client.destroy();
  });

  test.each(TUNNELS)("PX-14: who hangs up while a host is dialled by %s leaves no connection that still tries", async (_, header) => {
    // It never accepts: once two wait there, others get no answer at all.
    const listen = `require("net").createServer().listen({port:0,host:"127.0.0.2",backlog:1},function(){
      process.stdout.write(String(this.address().port));Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0)})`;
    const deaf = spawn(process.execPath, ["-e", listen], { stdio: ["ignore", "pipe", "inherit"] });
    const sockets: Socket[] = [];
    try {
      const port = Number(String((await once(deaf.stdout, "data"))[0]));
      const at = name("deaf.test", port);
      for (let index = 0; index < 4; index += 1) sockets.push(connect(port, "127.0.0.2").on("error", () => undefined));
      await eventually(
        async () => sockets.filter(({ connecting }) => !connecting).length,
        (full) => full === 2,
      );
      const open = (): number => dialling(port);
      const before = open();
      const clients = Array.from({ length: 5 }, () => {
        const client = lab.dial();
        client.write(`CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n${header}\r\n`);
        return client;
      });
      await eventually(
        async () => open() - before,
        (more) => more >= 5,
      );
      for (const client of clients) client.destroy();
      expect(
        await eventually(
          async () => open(),
          (now) => now <= before,
          5_000,
        ),
      ).toBeLessThanOrEqual(before);
    } finally {
      deaf.kill("SIGKILL");
      for (const socket of sockets) socket.destroy();
    }
  });

  test("PX-14: a hello cut into thousands of records is not read again and again", async () => {
    const { port } = await lab.tcp("127.0.0.2");
    const at = name("cut.test", port);
    const client = lab.dial();
    client.write(`CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
    await once(client, "data");
    const records = Buffer.concat(Array.from({ length: 2_000 }, (_, index) => Buffer.of(22, 3, 1, 0, 1, [1, 0, 0x7f, 0xff][index] ?? 0)));
    client.write(records);
    await new Promise((resolve) => client.once("close", resolve));
    expect(lab.records.map(({ code }) => code)).toContain("not_tls");
  });
});

describe("secrets that come back", needs("openssl"), () => {
  const VALUE = "canary-value-77aa01";
  let host: BoundHost;
  let placeholder: string;

  beforeEach(async () => {
    host = await BoundHost.open();
    ({ placeholder } = await host.keep("key", VALUE, { hosts: ["bound.test"], methods: [], path: null, header: null }));
  });
  afterEach(() => host.close());

  test("SC-10: neither as the name of a header nor in a body that only says it is packed", async () => {
    host.answer = ({ headers }, response) => {
      const said = String(headers["x-key"]);
      response.writeHead(200, { [`X-${said}`]: "1", "content-encoding": "gzip" }).end(`plain ${said}`);
    };
    const answer = await host.ask("GET /", [`X-Key: ${placeholder}`]);
    expect(host.last.headers["x-key"]).toBe(VALUE);
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(answer.toLowerCase()).not.toContain(VALUE);
  });

  test("SC-10: nor as the login of an earlier request, whichever client logged in", async () => {
    let last = "";
    host.answer = ({ headers }, response) => response.end((last ||= headers.authorization ?? ""));
    for (const user of ["", "a", "me", "you"]) {
      last = "";
      const login = (password: string): string => Buffer.from(`${user}:${password}`).toString("base64");
      await host.ask("GET /", [`Authorization: Basic ${login(placeholder)}`]);
      expect(last).toBe(`Basic ${login(VALUE)}`);
      const [, shown = ""] = /Basic (\S+)/.exec(await host.ask("GET /")) ?? [];
      expect(shown).toHaveLength(login(VALUE).length);
      // What is left of it are the letters that the secret shares with its neighbours.
      expect(shown.replaceAll("*", "").length).toBeLessThanOrEqual(login("").length + 4);
    }
  });

  test("SC-02: a path that some servers take for a climbing one is below nothing", async () => {
    const narrow = await host.keep("narrow", "narrow-value-1234", { hosts: ["bound.test"], methods: [], path: "/v1", header: null });
    for (const path of ["/v1/..;/admin", "/v1/..;a=b/admin", "/v1/%2e%2e;/admin", "/v1/%252e%252e/admin", "/v1/..%252fadmin"]) {
      await host.ask(`GET ${path}`, [`X-Key: ${narrow.placeholder}`]);
      expect(host.last.headers["x-key"], path).toBe(narrow.placeholder);
    }
    await host.ask("GET /v1/a;b=c", [`X-Key: ${narrow.placeholder}`]);
    expect(host.last.headers["x-key"]).toBe("narrow-value-1234");
  });

  test("PX-14: connections that were opened are counted no longer than they are there", async () => {
    await host.ask("GET /", [`X-Key: ${placeholder}`]);
    const left = await host.secured();
    left.write("GET / HTTP/1.1\r\nHost: bound.test\r\n\r\n");
    await once(left, "data");
    expect(host.lab.egress.use("one").connections).toBe(1);
    left.destroy();
    await eventually(
      async () => host.lab.egress.use("one").connections,
      (open) => open === 0,
    );
  });
});

describe("effects that are held", () => {
  let host: BoundHost;
  let approvals: Approvals;
  let token: string;

  beforeEach(async () => {
    host = await BoundHost.open((parts) => new Ledger({ ...parts, holdMs: 100 }));
    ({ approvals, approverToken: token } = host);
    await host.store.change((change) => change.sandboxes.put(aSandboxRow({ id: "one" })));
    await host.lab.set({ effects: "hold" });
  });
  afterEach(() => host.close());

  async function plain(): Promise<{ at: string; heard: readonly string[] }> {
    const web = await host.lab.web("127.0.0.2");
    host.lab.names.set("web.test", ["127.0.0.2"]);
    host.lab.opened.push({ host: "web.test", ports: [web.port], tcp: false });
    return { at: `web.test:${web.port}`, heard: web.heard };
  }

  const post = (at: string, path: string, body: string): Promise<string> =>
    host.lab.say(`POST http://${at}${path} HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);

  test("NET-6: a yes is for the whole address, however long, and the question says that it is longer", async () => {
    const { at, heard } = await plain();
    const long = `/${"a".repeat(3_000)}`;
    expect(await post(at, `${long}?amount=1`, "x")).toMatch(/^HTTP\/1.1 403 /);
    const [asked] = await approvals.list(false);
    expect(asked?.target).toMatch(/a… \(\d+ characters, sha256 /);
    await approvals.answer(asked?.id ?? "", "once", readFileSync(token, "utf8").trim());
    expect(await post(at, `${long}?amount=9999`, "x")).toMatch(/^HTTP\/1.1 403 /);
    expect(heard).toEqual([]);
    expect(await post(at, `${long}?amount=1`, "x")).toMatch(/^HTTP\/1.1 200 /);
    expect(heard).toHaveLength(1);
  });

  test("NET-6, RS-11: the questions of one sandbox leave room for those of others", async () => {
    const { at, heard } = await plain();
    const answers: string[] = [];
    for (let index = 0; index < LIMITS.waitingQuestions + 4; index += 1) answers.push(await post(at, `/${index}`, "x"));
    expect((await approvals.list(false)).length).toBe(LIMITS.waitingQuestions);
    expect(answers.at(-1)).toMatch(/^HTTP\/1.1 403 .*effect_held.*questions of this sandbox wait already/s);
    // What was asked about already can still be tried.
    expect(await post(at, "/0", "x")).toContain("waits for a person");
    expect(heard).toEqual([]);
  });

  test("NET-6, PX-14: a body that is too long to be held is refused, and ends only its sender", async () => {
    const { at, heard } = await plain();
    expect(await post(at, "/", "x".repeat(LIMITS.heldBodyBytes + 1))).toMatch(/^HTTP\/1.1 400 .*bad_request/s);
    expect(await post(at, "/", "x")).toContain("waits for a person");
    expect(heard).toEqual([]);
  });

  test("NET-6, PX-14: bodies that are held have a limit together, too", async () => {
    const { at } = await plain();
    const size = LIMITS.heldBodyBytes - 1;
    const many = Math.ceil(LIMITS.heldTogetherBytes / size) + 1;
    const clients = Array.from({ length: many }, () => {
      const client = host.lab.dial();
      client.write(`POST http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nContent-Length: ${size}\r\n\r\n`);
      // All but the end, which never comes.
      client.write(Buffer.alloc(size - 1));
      return client;
    });
    const said = await Promise.race(clients.map(async (client) => String((await once(client, "data"))[0])));
    expect(said).toMatch(/^HTTP\/1.1 429 .*too_many_bytes/s);
    for (const client of clients) client.destroy();
    await eventually(
      () => post(at, "/", "x"),
      (answer) => answer.includes("waits for a person"),
    );
  });
});
