/** Tunnels that the mover carries and the server decides on: each byte arrives in its order, and none before it was allowed. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { Duplex } from "node:stream";
import { connect as connectTls, createServer as createTls } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { certificate } from "../support/certificates.ts";
import { PlainLab, type PlainClient } from "../support/plain-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const LARGE = Buffer.alloc(6_000_000, "0123456789abcdef");
/** A host that ends its side once the program has ended its own. */
const endsToo = (socket: Socket): void => void socket.once("end", () => socket.end());
const ESTABLISHED = "HTTP/1.1 200 Connection Established\r\n\r\n";

/** Takes little at once, and nothing before it is told to. */
const SLOW_HOST = `
import hashlib, socket, sys
host = socket.socket()
host.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2000)
host.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 88)
host.bind(("127.0.0.7", 0))
host.listen(1)
print(host.getsockname()[1], flush=True)
one = host.accept()[0]
sys.stdin.readline()
count, sum = 0, hashlib.sha256()
while data := one.recv(65536):
    count += len(data)
    sum.update(data)
print(count, sum.hexdigest(), flush=True)
`;

/** As large as one may be, nearly. */
async function longGreeting(servername: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const way = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _, done) {
      chunks.push(chunk);
      done();
    },
  });
  const tls = connectTls({ socket: way, servername, ALPNProtocols: Array.from({ length: 120 }, () => "a".repeat(250)) });
  tls.on("error", () => undefined);
  await eventually(
    () => Buffer.concat(chunks).length,
    (bytes) => bytes > 30_000,
  );
  tls.destroy();
  return Buffer.concat(chunks);
}

describe("a tunnel", needs("linux", "compiler", "python3"), () => {
  let lab: PlainLab;
  /** A host of any protocol: what it heard, on each connection. */
  const raw: Buffer[] = [];
  let rawPort = 0;
  let tlsPort = 0;
  let onRaw = endsToo;

  beforeAll(async () => {
    lab = new PlainLab();
    await lab.open();
    rawPort = await lab.listen(
      createServer({ allowHalfOpen: true }, (socket) => {
        const index = raw.push(Buffer.alloc(0)) - 1;
        socket.on("error", () => undefined);
        socket.on("data", (data) => (raw[index] = Buffer.concat([raw[index] ?? Buffer.alloc(0), data])));
        onRaw(socket);
      }),
      "127.0.0.2",
    );
    tlsPort = await lab.listen(
      createTls(certificate(lab.folder, "allowed.test"), (socket) => {
        socket.on("error", () => undefined);
        socket.pipe(socket);
      }),
      "127.0.0.2",
    );
    lab.names.set("any.test", ["127.0.0.2"]);
    lab.opened.push({ host: "allowed.test", ports: [rawPort, tlsPort], tcp: false }, { host: "any.test", ports: [rawPort], tcp: true });
  }, 60_000);
  beforeEach(async () => {
    raw.length = lab.heard.length = lab.records.length = lab.asked.length = lab.sockets = lab.looks = 0;
    onRaw = endsToo;
    lab.failing = false;
    lab.judge = undefined;
    lab.names.set("any.test", ["127.0.0.2"]);
    await lab.set({});
  });
  afterAll(() => lab?.close());

  /** One that the proxy said yes to. */
  async function opened(to: string, headers = ""): Promise<PlainClient> {
    const client = lab.client().write(lab.tunnel(to, headers));
    await until(client, ESTABLISHED.length);
    expect(client.take()).toBe(ESTABLISHED);
    return client;
  }

  const until = (client: PlainClient, bytes: number): Promise<unknown> =>
    eventually(
      () => client.isClosed || client.waiting,
      (waiting) => waiting === true || waiting >= bytes,
    );

  const end = async (): Promise<{ sentBytes: number; receivedBytes: number } | undefined> =>
    (
      await eventually(
        () => lab.records.find(({ ended }) => ended !== undefined),
        (found) => found !== undefined,
      )
    )?.ended;

  const refusals = (): Promise<(string | undefined)[]> =>
    eventually(
      () => lab.records.filter(({ verdict }) => verdict === "deny").map(({ code }) => code),
      (codes) => codes.length > 0,
    );

  /** TLS through it, its first bytes in pieces of this size. */
  async function echoed(client: PlainClient, pieceBytes: number, text: string): Promise<string> {
    const { socket } = client;
    socket.removeAllListeners("data");
    const way = new Duplex({
      read: () => void socket.resume(),
      write(chunk: Buffer, _, done) {
        for (let at = 0; at < chunk.length; at += pieceBytes) socket.write(chunk.subarray(at, at + pieceBytes));
        done();
      },
    });
    socket.on("data", (chunk) => way.push(chunk)).once("end", () => way.push(null));
    const tls = connectTls({ socket: way, servername: "allowed.test", rejectUnauthorized: false });
    tls.on("error", () => undefined);
    tls.write(text);
    let heard = "";
    for await (const chunk of tls) {
      heard += String(chunk);
      if (heard.length >= text.length) break;
    }
    socket.destroy();
    return heard;
  }

  test("is carried by the mover alone, and recorded with its bytes", async () => {
    const client = await opened(`any.test:${rawPort}`);
    client.write("hello");
    await eventually(
      () => raw[0]?.toString(),
      (text) => text === "hello",
    );
    client.socket.end();
    expect(await end()).toEqual({ sentBytes: 5, receivedBytes: 0 });
    expect(lab.records[0]).toMatchObject({ protocol: "connect", host: "any.test", port: rawPort, address: "127.0.0.2", verdict: "allow" });
    expect(lab.sockets).toBe(0);
  });

  test.each([1, 7, 100_000])("of TLS is seen through however it is cut, here into pieces of %i bytes", async (bytes) => {
    expect(await echoed(await opened(`allowed.test:${tlsPort}`), bytes, "over there")).toBe("over there");
    expect(lab.sockets).toBe(0);
    await lab.idle();
  });

  test("the control: the server reads one that is asked for in another way, and one that is refused", async () => {
    expect(await echoed(await opened(`allowed.test:${tlsPort}`, "Expect: x\r\n"), 100_000, "over there")).toBe("over there");
    expect(lab.sockets).toBe(1);
    const client = lab.client().write(lab.tunnel("evil.test:443"));
    expect((await client.rest()).toString()).toMatch(/^HTTP\/1.1 403 [^]*\(host_not_allowed\)[^]*"code":"host_not_allowed"/);
    expect(lab.sockets).toBe(2);
    expect(lab.asked).not.toContain("evil.test");
    await lab.idle();
  });

  test("asked for in HTTP/1.0 is the same", async () => {
    const client = lab.client().write(`CONNECT any.test:${rawPort} HTTP/1.0\r\n\r\n`);
    await until(client, ESTABLISHED.length);
    expect(client.take()).toBe(ESTABLISHED);
    expect(lab.sockets).toBe(0);
    client.socket.destroy();
  });

  test.each<[what: string, said: string]>([
    ["no TLS", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["a request to another host", "CONNECT evil.test:443 HTTP/1.1\r\n\r\n"],
    ["plain HTTP", "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"],
    ["a greeting that never ends", `\x16\x03\x01\x40\x00\x01\x00\x7f\xff${"a".repeat(40_000)}`],
  ])("in which %s is said ends, and nothing of it went out", async (_, said) => {
    const client = (await opened(`allowed.test:${rawPort}`)).write(said);
    expect((await client.rest()).length).toBe(0);
    expect(await refusals()).toEqual(["not_tls"]);
    await lab.idle();
    expect(Buffer.concat(raw).length).toBe(0);
    expect(lab.sockets).toBe(0);
  });

  test("whose greeting is longer than its host takes at once brings all of it, and what is said behind it", async () => {
    const child = spawn("python3", ["-c", SLOW_HOST], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const port = Number((await lines.next()).value);
      lab.names.set("slow.test", ["127.0.0.7"]);
      lab.opened.push({ host: "slow.test", ports: [port], tcp: false });
      const client = await opened(`slow.test:${port}`);
      const greeting = await longGreeting("slow.test");
      client.socket.write(Buffer.concat([greeting, LARGE]));
      // It was let through, and its host takes nothing yet.
      await eventually(
        () => lab.egress.use("one").sentBytes,
        (bytes) => bytes > 0,
      );
      expect(lab.egress.use("one").sentBytes).toBeLessThan(greeting.length);
      client.socket.end();
      child.stdin.write("read\n");
      const all = Buffer.concat([greeting, LARGE]);
      expect((await lines.next()).value).toBe(`${all.length} ${createHash("sha256").update(all).digest("hex")}`);
      expect((await end())?.sentBytes).toBe(all.length);
      expect(lab.sockets).toBe(0);
    } finally {
      child.kill();
    }
  });

  test("in which nothing is said ends after a while, on both sides", async () => {
    const before = { ...LIMITS };
    Object.assign(LIMITS, { egressHeadMs: 300 });
    try {
      let closed = false;
      onRaw = (socket) => {
        endsToo(socket);
        socket.once("close", () => (closed = true));
      };
      const client = await opened(`allowed.test:${rawPort}`);
      expect((await client.rest()).length).toBe(0);
      await eventually(
        () => closed,
        (isClosed) => isClosed,
      );
      expect(await end()).toEqual({ sentBytes: 0, receivedBytes: 0 });
      await lab.idle();
    } finally {
      Object.assign(LIMITS, before);
    }
  });

  test("to a host of any protocol brings what the host says first", async () => {
    onRaw = (socket) => {
      endsToo(socket);
      socket.write("220 ready\r\n");
    };
    const client = lab.client().write(lab.tunnel(`any.test:${rawPort}`));
    await until(client, ESTABLISHED.length + 11);
    expect(client.take()).toBe(`${ESTABLISHED}220 ready\r\n`);
    client.socket.destroy();
    await lab.idle();
  });

  test("that its program has ended on its side brings the rest of the answer", async () => {
    onRaw = (socket) => void socket.once("end", () => socket.end(LARGE));
    const client = await opened(`any.test:${rawPort}`);
    client.socket.end("a question");
    expect((await client.rest()).equals(LARGE)).toBe(true);
    expect(raw[0]?.toString()).toBe("a question");
    expect(await end()).toEqual({ sentBytes: 10, receivedBytes: LARGE.length });
    await lab.idle();
  });

  test("takes each byte of a large upload, and brings it back", async () => {
    onRaw = (socket) => void socket.pipe(socket);
    const client = await opened(`any.test:${rawPort}`);
    client.socket.end(LARGE);
    expect((await client.rest()).equals(LARGE)).toBe(true);
    expect(raw[0]?.equals(LARGE)).toBe(true);
    expect(lab.sockets).toBe(0);
  });

  test("goes to the next address where the first one refuses, and is told why where none answers", async () => {
    lab.names.set("any.test", ["127.0.0.9", "127.0.0.2"]);
    const reached = (await opened(`any.test:${rawPort}`)).write("hello");
    await eventually(
      () => raw[0]?.toString(),
      (text) => text === "hello",
    );
    reached.socket.destroy();
    lab.names.set("any.test", ["127.0.0.9", "127.0.0.10"]);
    const client = lab.client().write(lab.tunnel(`any.test:${rawPort}`));
    expect((await client.rest()).toString()).toMatch(/^HTTP\/1.1 502 [^]*\(unreachable\)/);
  });

  test("that can't be recorded is refused, and nothing is dialled", async () => {
    lab.failing = true;
    const client = lab.client().write(lab.tunnel(`any.test:${rawPort}`));
    expect((await client.rest()).toString()).toMatch(/^HTTP\/1.1 503 [^]*\(not_recorded\)/);
    expect(raw).toHaveLength(0);
  });

  test("is opened by the server where a secret belongs to its host", async () => {
    const own = certificate(lab.folder, "allowed.test");
    lab.interceptor = {
      wants: (host) => host === "allowed.test",
      credentials: async () => ({ key: own.key.toString(), cert: own.cert.toString() }),
      permit: async () => undefined,
      fill: (_, headers) => ({ headers, hidden: [], used: [] }),
      record: async () => undefined,
    };
    try {
      const client = await opened(`allowed.test:${tlsPort}`);
      expect(lab.sockets).toBe(1);
      client.socket.destroy();
    } finally {
      lab.interceptor = undefined;
    }
  });

  test("is not carried where a secret came after it was asked for", async () => {
    const client = await opened(`allowed.test:${rawPort}`);
    lab.interceptor = {
      wants: () => true,
      credentials: () => Promise.reject(new Error("not asked for")),
      permit: async () => undefined,
      fill: (_, headers) => ({ headers, hidden: [], used: [] }),
      record: async () => undefined,
    };
    try {
      await echoed(client, 100_000, "over there").catch(() => undefined);
      await lab.idle();
      expect(Buffer.concat(raw).length).toBe(0);
    } finally {
      lab.interceptor = undefined;
    }
  });

  test("for plain HTTP at the port of the web is taken apart, from what was said already", async (context) => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    });
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(80, "127.0.0.2", () => resolve(true));
    });
    if (!isFree) return context.skip("port 80 of this machine is not free");
    try {
      lab.names.set("web.test", ["127.0.0.2"]);
      lab.opened.push({ host: "web.test", ports: [80], tcp: false });
      const client = (await opened("web.test:80")).write("GET /a HTTP/1.1\r\n");
      await eventually(
        () => lab.sockets,
        (count) => count === 1,
      );
      expect((await client.write("Host: web.test\r\n\r\n").answer()).body.toString()).toBe("ok");
      expect(lab.records.map(({ protocol, path }) => [protocol, path])).toContainEqual(["http", "/a"]);
      client.socket.destroy();
    } finally {
      server.close();
    }
  });

  test("waits for a person, and goes through then", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    lab.judge = async (_, __, ruling) => {
      await promise;
      return ruling;
    };
    const client = lab.client().write(lab.tunnel(`any.test:${rawPort}`));
    await eventually(
      () => lab.connections,
      (count) => count === 1,
    );
    expect(raw).toHaveLength(0);
    resolve();
    await once(client.socket, "data");
    expect(client.take()).toBe(ESTABLISHED);
    client.socket.destroy();
    await lab.idle();
  });
});
