/** Bytes that the mover moves: whole, counted, cut when they must be, and what its end means. The mover is built with sanitizers. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import type { NetworkRecord } from "../../src/rules/network/gate.ts";
import { ProxyLab } from "../support/proxy-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const LARGE = Buffer.alloc(3_000_000, "0123456789abcdef");

describe("the mover", needs("linux", "compiler"), () => {
  let lab: ProxyLab;
  let echo: number;
  let web: number;
  const rules = (): { allow: { host: string; ports: number[]; tcp: boolean }[] } => ({
    allow: [
      { host: "echo.test", ports: [echo], tcp: true },
      { host: "web.test", ports: [web], tcp: false },
    ],
  });

  beforeAll(async () => {
    lab = new ProxyLab();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => undefined);
      void buffer(socket).then(
        (data) => socket.end(data),
        () => undefined,
      );
    });
    echo = await lab.listen(server, "127.0.0.2");
    ({ port: web } = await lab.web("127.0.0.2", (request, response) => {
      response.writeHead(200, { "content-length": LARGE.length });
      if (request.url === "/short") return void response.write(LARGE.subarray(0, 2_000_000), () => response.destroy());
      if (request.url === "/slow") return void response.write(LARGE.subarray(0, 1_000_000));
      response.end(LARGE);
    }));
    lab.names.set("echo.test", ["127.0.0.2"]).set("web.test", ["127.0.0.2"]);
    lab.opened.push({ host: "echo.test", ports: [echo], tcp: true }, { host: "web.test", ports: [web], tcp: false });
    await lab.set(rules());
  }, 60_000);
  afterAll(() => lab?.close());

  const endOf = (from: number, wanted: string): Promise<NetworkRecord | undefined> =>
    eventually(
      () => lab.records.slice(from).find(({ host, ended }) => host === wanted && ended !== undefined),
      (record) => record !== undefined,
    );

  async function tunnel(): Promise<Socket> {
    const socket = connect({ path: lab.socket(), allowHalfOpen: true });
    socket.on("error", () => undefined);
    socket.write(`CONNECT echo.test:${echo} HTTP/1.1\r\nHost: echo.test:${echo}\r\n\r\n`);
    expect(String((await once(socket, "data"))[0])).toContain("200 Connection");
    return socket;
  }

  const request = (path: string): string => `GET http://web.test:${web}${path} HTTP/1.1\r\nHost: web.test:${web}\r\n\r\n`;

  test("brings everything both ways, keeps a half-close, and counts each byte", async () => {
    const from = lab.records.length;
    const socket = await tunnel();
    socket.end(LARGE);
    expect((await buffer(socket)).equals(LARGE)).toBe(true);
    expect((await endOf(from, "echo.test"))?.ended).toEqual({ sentBytes: LARGE.length, receivedBytes: LARGE.length });
    await eventually(
      () => lab.egress.use("one").connections,
      (count) => count === 0,
    );
  });

  test("sends what a client says before it knows that the tunnel is open, once and in order", async () => {
    const socket = connect({ path: lab.socket(), allowHalfOpen: true });
    socket.end(`CONNECT echo.test:${echo} HTTP/1.1\r\nHost: echo.test:${echo}\r\n\r\nearly words`);
    expect((await buffer(socket)).toString()).toBe("HTTP/1.1 200 Connection Established\r\n\r\nearly words");
  });

  test("brings large bodies of known length one after the other on one connection", async () => {
    const from = lab.records.length;
    const socket = lab.dial();
    for (const path of ["/one", "/two", "/three"]) {
      socket.write(request(path));
      let got = Buffer.alloc(0);
      let body = -1;
      while (body < 0 || got.length < body + LARGE.length) {
        const [chunk] = (await once(socket, "data")) as [Buffer];
        got = Buffer.concat([got, chunk]);
        if (body < 0 && got.includes("\r\n\r\n")) body = got.indexOf("\r\n\r\n") + 4;
      }
      expect(got.length).toBe(body + LARGE.length);
      expect(got.subarray(body).equals(LARGE)).toBe(true);
    }
    socket.destroy();
    const ends = await eventually(
      () => lab.records.slice(from).filter(({ host, ended }) => host === "web.test" && ended !== undefined),
      (found) => found.length === 3,
    );
    for (const { ended } of ends) expect(ended?.receivedBytes).toBeGreaterThan(LARGE.length);
    expect(new Set(ends.map(({ ended }) => ended?.receivedBytes)).size).toBe(1);
  });

  test("breaks the connection where a body ends too early, so that no client takes it for whole", async () => {
    const got = await lab.sayBytes(request("/short"));
    expect(got.length).toBeGreaterThan(0);
    expect(got.length).toBeLessThan(LARGE.length);
  });

  test("cuts what the rules no longer allow at once, with its bytes recorded", async () => {
    const from = lab.records.length;
    const socket = lab.dial();
    socket.write(request("/slow"));
    let size = 0;
    socket.on("data", (chunk: Buffer) => (size += chunk.length));
    await eventually(
      () => size,
      (bytes) => bytes > 1_000_000,
    );
    const closed = once(socket, "close");
    const bare = lab.opened.splice(0);
    await lab.set({});
    await closed;
    lab.opened.push(...bare);
    await lab.set(rules());
    const received = (await endOf(from, "web.test"))?.ended?.receivedBytes;
    expect(received).toBeGreaterThan(1_000_000);
    // The head that the proxy writes is longer than the one that came.
    expect(received).toBeLessThanOrEqual(size);
  });

  test("ends what carries no byte for too long", async () => {
    const before = LIMITS.egressIdleMs;
    Object.assign(LIMITS, { egressIdleMs: 500 });
    try {
      const socket = await tunnel();
      socket.resume();
      await once(socket, "end");
      await eventually(
        () => lab.egress.use("one").connections,
        (count) => count === 0,
      );
      expect(lab.egress.use("one").connections).toBe(0);
    } finally {
      Object.assign(LIMITS, { egressIdleMs: before });
    }
  });

  test(
    "PX-18: takes one descriptor of a TCP connection with its preface, and nothing else",
    needs("linux", "compiler", "python3"),
    async () => {
      const send = async (what: string): Promise<string> =>
        (await promisify(execFile)("python3", ["-c", SEND, lab.socket(), String(web), what], { timeout: 15_000 })).stdout.trim();
      expect(await send("tcp")).toContain("HTTP/1.1 200 OK");
      for (const what of ["pipe", "udp", "two", "file"]) expect(await send(what), what).toBe("ended");
      expect(await send("tcp"), "the next connection").toContain("HTTP/1.1 200 OK");
    },
  );

  test("F-49: takes its connections along when it is killed; the next ones work, and that is told once", async () => {
    const from = lab.records.length;
    const open = await tunnel();
    const closed = once(open, "end");
    open.resume();
    const undecided = lab.dial();
    undecided.write("GET ");
    await eventually(
      () => lab.egress.use("one").connections,
      (count) => count === 2,
    );
    const ended = once(undecided, "close");
    const pid = lab.mover.pid ?? 0;
    process.kill(pid, "SIGKILL");
    await Promise.all([closed, ended]);
    expect((await endOf(from, "echo.test"))?.ended).toBeDefined();
    await eventually(
      () => lab.mover.pid,
      (next) => next !== undefined && next !== pid,
    );
    const text = await eventually(
      () => lab.say(request("/after").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")),
      (said) => said.includes("200 OK"),
    );
    expect(text.length).toBeGreaterThan(LARGE.length);
    expect(lab.warnings.filter((warning) => warning.includes("mover"))).toHaveLength(1);
    expect(lab.egress.use("one").connections).toBeLessThanOrEqual(1);
  });
});

/** Hands over what it is told to, as process 1 does, and asks through a TCP connection for a page. */
const SEND = `
import socket, sys, os
path, port, what = sys.argv[1:]
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
inside = listener.accept()[0]
fds = {"tcp": [inside.fileno()], "pipe": [os.pipe()[1]], "udp": [socket.socket(socket.AF_INET, socket.SOCK_DGRAM).fileno()],
       "two": [inside.fileno(), inside.fileno()], "file": [os.open("/etc/hostname", os.O_RDONLY)]}[what]
door = socket.socket(socket.AF_UNIX); door.connect(path)
socket.send_fds(door, [b"\\x01"], fds)
inside.close()
if what != "tcp":
    door.settimeout(10)
    print("ended" if door.recv(1) == b"" else "taken")
else:
    door.close()
    client.sendall(f"GET http://web.test:{port}/by-descriptor HTTP/1.1\\r\\nHost: web.test:{port}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    got = b""
    while chunk := client.recv(1 << 20): got += chunk
    print(got[:64].decode("latin1") if len(got) > 3000000 else "short %d" % len(got))
`;
