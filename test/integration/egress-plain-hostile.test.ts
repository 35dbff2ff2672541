/** Plain requests between programs and hosts that mean harm: nobody else waits, nothing is lost, and no half looks whole. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PlainLab, type PlainClient } from "../support/plain-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const LARGE = Buffer.alloc(12_000_000, "0123456789abcdef");
const OPEN_HEAD = "HTTP/1.1 200 OK\r\n\r\n";
/** The same as it comes inside. */
const CLOSE_HEAD = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
/** What a socket takes whose program does not read. */
const LAST_BYTES = 120_000;

describe("a plain request among hostile neighbours", needs("linux", "compiler", "python3"), () => {
  let lab: PlainLab;
  const programs: ChildProcess[] = [];
  beforeAll(async () => {
    lab = new PlainLab();
    await lab.open();
    lab.answers.set("/large", Buffer.concat([Buffer.from(OPEN_HEAD), LARGE]));
    lab.answers.set("/silent", () => undefined);
  }, 60_000);
  beforeEach(async () => {
    lab.heard.length = lab.records.length = lab.sockets = 0;
    await lab.set({});
  });
  afterAll(() => {
    lab?.close();
    for (const program of programs) program.kill();
  });

  function python(program: string, ...words: string[]): { child: ChildProcess; said: Promise<string>; line: () => Promise<string> } {
    const child = spawn("python3", ["-c", program, ...words], { stdio: ["pipe", "pipe", "inherit"] });
    programs.push(child);
    let all = "";
    child.stdout.on("data", (chunk: Buffer) => (all += chunk.toString()));
    const said = once(child, "close").then(() => all);
    const line = (): Promise<string> =>
      eventually(
        () => all.trim().split("\n").at(-1) ?? "",
        (last) => last !== "",
      );
    return { child, said, line };
  }

  test.each([
    ["closes", (socket: Socket) => socket.end()],
    ["breaks off", (socket: Socket) => socket.resetAndDestroy()],
  ])("whose host %s in the middle of a body of known length sees no whole answer", async (_, end) => {
    lab.answers.set("/half", (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", () => end(socket)));
    const client = lab.client().write(lab.request("/half"));
    const said = (await client.rest()).toString();
    expect(said).not.toMatch(/half./s);
    // The same connection brings nothing else that could be taken for the rest.
    expect(client.isClosed).toBe(true);
    expect((await lab.endOf("/half"))?.receivedBytes).toBeLessThanOrEqual("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".length);
    await lab.idle();
  });

  test("gets each byte of an answer until its end, though it sent the next request ahead and is slow to read", async () => {
    let answer = (): void => undefined;
    lab.answers.set("/last", (socket) => (answer = () => void socket.end(`${OPEN_HEAD}${"x".repeat(LAST_BYTES)}`)));
    const { child, said, line } = python(INSIDE, lab.socket(), lab.at, "/last");
    await eventually(
      () => lab.heard.length,
      (count) => count > 0,
    );
    child.stdin?.write("/next\n");
    await eventually(line, (last) => last === "sent /next");
    answer();
    // All of it is on its way, and waits for the program to read.
    expect((await lab.endOf("/last"))?.receivedBytes).toBe(OPEN_HEAD.length + LAST_BYTES);
    child.stdin?.write("read\n");
    expect(await said).toContain(`\n${CLOSE_HEAD.length + LAST_BYTES}\n`);
    // What was sent ahead is not answered on a connection that ends.
    expect(lab.heard).toHaveLength(1);
    expect(lab.sockets).toBe(0);
    await lab.idle();
  });

  test("that hands over a descriptor which blocks, and does not read, holds up no other connection", async () => {
    const { child, said } = python(INSIDE, lab.socket(), lab.at, "/large");
    await eventually(
      () => lab.heard.length,
      (count) => count > 0,
    );
    // Until the host can send no more, for all that lies between it and a program that does not read is full.
    const waits = (): number => Math.max(0, ...[...lab.outside].map((socket) => socket.writableLength));
    let last = -1;
    await eventually(waits, (size) => {
      const isStill = size > 0 && size === last;
      last = size;
      return isStill;
    });
    for (let turn = 0; turn < 3; turn += 1) expect((await lab.ask("/other")).body.toString()).toBe("hello /other");
    child.stdin?.write("read\n");
    expect(await said).toContain(`\n${CLOSE_HEAD.length + LARGE.length}\n`);
    await lab.idle();
  });

  test("gets what stands before and behind a byte that its host marks as urgent, and the mover rests meanwhile", async () => {
    const { child, line } = python(URGENT);
    const port = Number(await line());
    const rule = { host: "urgent.test", ports: [port], tcp: true };
    lab.names.set("urgent.test", ["127.0.0.6"]);
    lab.opened.push(rule);
    await lab.set({ allow: [rule] });
    const host = `urgent.test:${port}`;
    for (const asked of [lab.request("/", { host }), `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`]) {
      const client = lab
        .client()
        .write(asked)
        .write(asked.startsWith("CONNECT") ? "hello" : "");
      await eventually(
        () => client.waiting,
        (bytes) => bytes > 0,
      );
      child.stdin?.write("urgent\n");
      await came(client, "second");
      const before = cpuTicks(lab.mover.pid ?? 0);
      // A loop that is kept awake takes all of it.
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(cpuTicks(lab.mover.pid ?? 0) - before).toBeLessThan(8);
      child.stdin?.write("end\n");
      expect((await client.rest()).toString()).toMatch(/firstsecondthird$/);
    }
    await lab.idle();
  });

  const came = (client: PlainClient, wanted: string): Promise<unknown> =>
    eventually(
      () => client.text,
      (said) => said.endsWith(wanted),
    );

  test("is cut at once where the rules no longer allow its host, with its bytes recorded", async () => {
    lab.answers.set("/begun", (socket) => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun`));
    const clients = ["/begun", "/silent"].map((path) => lab.client().write(lab.request(path)));
    await came(clients[0] as PlainClient, "begun");
    await eventually(
      () => lab.heard.length,
      (count) => count === 2,
    );
    const bare = lab.opened.splice(0);
    await lab.set({});
    expect((await clients[0]?.rest())?.toString()).toMatch(/begun$/);
    expect(await clients[1]?.rest()).toHaveLength(0);
    lab.opened.push(...bare);
    expect((await lab.endOf("/begun"))?.receivedBytes).toBe("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun".length);
    expect((await lab.endOf("/silent"))?.receivedBytes).toBe(0);
    expect((await lab.ask("/next")).body.toString()).toBe("hello /next");
  });

  test("counts as one of the connections that a sandbox may have", async () => {
    const clients: PlainClient[] = [];
    for (let count = 0; count < 192; count += 1) {
      const client = lab.client().write(lab.request("/silent"));
      clients.push(client);
      await once(client.socket, "connect");
    }
    await eventually(
      () => lab.connections,
      (count) => count === 192,
    );
    expect(lab.sockets).toBe(0);
    expect((await lab.ask("/more")).status).toBe(429);
    for (const client of clients) client.socket.destroy();
    await lab.idle();
    expect((await lab.ask("/again")).body.toString()).toBe("hello /again");
  });

  test("finds its kept connection ended once the way out is closed", async () => {
    const client = lab.client();
    await client.write(lab.request("/1")).answer();
    lab.egress.close("one");
    expect(await client.rest()).toHaveLength(0);
  });
});

/** Of the processor, of which there are a hundred in a second. */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

/** Hands over a TCP connection as process 1 does, asks for each page that it is told, and then reads; says how much came. */
const INSIDE = `
import socket, sys
path, at, page = sys.argv[1:]
listener = socket.create_server(("127.0.0.1", 0))
client = socket.socket(); client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
client.connect(listener.getsockname())
inside = listener.accept()[0]; inside.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 200000)
door = socket.socket(socket.AF_UNIX); door.connect(path)
socket.send_fds(door, [b"\\x01"], [inside.fileno()])
inside.close(); door.close()
while page != "read":
    client.sendall(f"GET http://{at}{page} HTTP/1.1\\r\\nHost: {at}\\r\\n\\r\\n".encode())
    print("sent", page, flush=True)
    page = sys.stdin.readline().strip()
size = 0
try:
    while chunk := client.recv(1 << 16): size += len(chunk)
except ConnectionResetError: print("reset after", end=" ")
print(size)
`;

/** A host that says "first", a byte that is urgent, "second" and "third", each when it is told to. */
const URGENT = `
import socket, sys
listener = socket.create_server(("127.0.0.6", 0)); print(listener.getsockname()[1], flush=True)
while True:
    one = listener.accept()[0]; one.recv(4096)
    one.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\nfirst")
    sys.stdin.readline()
    one.send(b"!", socket.MSG_OOB); one.sendall(b"second")
    sys.stdin.readline()
    one.sendall(b"third"); one.close()
`;
