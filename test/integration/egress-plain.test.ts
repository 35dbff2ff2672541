/** Plain requests, which the mover carries and the server decides on: each answer is whole, and each request is decided by itself. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { PlainLab } from "../support/plain-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const LARGE = Buffer.alloc(6_000_000, "0123456789abcdef");

describe("a plain request", needs("linux", "compiler"), () => {
  let lab: PlainLab;
  beforeAll(async () => {
    lab = new PlainLab();
    await lab.open();
  }, 60_000);
  beforeEach(() => {
    lab.heard.length = lab.records.length = lab.asked.length = lab.sockets = 0;
    lab.answers.clear();
    lab.failing = false;
    lab.judge = undefined;
    lab.names.set("allowed.test", ["127.0.0.2"]);
  });
  afterAll(() => lab?.close());

  const verdicts = (): (readonly [string | undefined, string])[] =>
    lab.records.filter(({ ended }) => ended === undefined).map(({ path, verdict }) => [path, verdict]);

  test("is carried by the mover alone, and recorded with its bytes", async () => {
    const { status, body } = await lab.ask("/a?b=c");
    expect([status, body.toString()]).toEqual([200, "hello /a?b=c"]);
    expect(lab.heard).toEqual([`GET /a?b=c HTTP/1.1\r\nHost: ${lab.at}\r\nConnection: close\r\n\r\n`]);
    expect(await lab.endOf("/a?b=c")).toEqual({
      sentBytes: lab.heard[0]?.length,
      receivedBytes: "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello /a?b=c".length,
    });
    expect(lab.records[0]).toMatchObject({ protocol: "http", method: "GET", host: "allowed.test", port: lab.port, address: "127.0.0.2" });
    expect(lab.sockets).toBe(0);
    await lab.idle();
  });

  test("the control: the server gets what is not plain, and what is refused", async () => {
    expect((await lab.ask("/post", { method: "POST", headers: "Content-Length: 0\r\n" })).status).toBe(200);
    expect(lab.sockets).toBe(1);
    expect((await lab.ask("/", { host: "evil.test" })).status).toBe(403);
    expect(lab.sockets).toBe(2);
  });

  test("is followed by others on its connection, each of them decided anew and recorded", async () => {
    const client = lab.client();
    for (const path of ["/1", "/2", "/3"]) {
      const { head, body } = await client.write(lab.request(path)).answer();
      expect(body.toString()).toBe(`hello ${path}`);
      expect(head).toMatch(/\r\nConnection: keep-alive\r\nKeep-Alive: timeout=15$/);
      expect(lab.connections).toBe(1);
    }
    expect(verdicts()).toEqual([
      ["/1", "allow"],
      ["/2", "allow"],
      ["/3", "allow"],
    ]);
    expect(lab.sockets).toBe(0);
    client.socket.destroy();
    await lab.idle();
  });

  test("is answered before one to a denied host, which is refused on the same connection", async () => {
    const client = lab.client();
    expect((await client.write(lab.request("/1")).answer()).status).toBe(200);
    const { status, head } = await client.write(lab.request("/2", { host: "evil.test" })).answer();
    expect([status, head.includes("(host_not_allowed)")]).toEqual([403, true]);
    expect((await client.rest()).length).toBe(0);
    expect(lab.heard).toHaveLength(1);
    expect(lab.asked).not.toContain("evil.test");
    expect(verdicts()).toEqual([
      ["/1", "allow"],
      ["/2", "deny"],
    ]);
    await lab.idle();
  });

  test("is followed by one with a body, which the server reads from its first byte", async () => {
    const client = lab.client();
    await client.write(lab.request("/1")).answer();
    const post = lab.request("/2", { method: "POST", headers: "Content-Length: 5\r\nConnection: close\r\n" });
    expect((await client.write(`${post}12345`).answer()).body.toString()).toBe("hello /2");
    expect(lab.heard[1]).toMatch(/^POST \/2 HTTP\/1.1\r\n/);
    expect(lab.sockets).toBe(1);
    await client.rest();
    await lab.idle();
  });

  test.each([1, 2, 3])("is answered in its turn where several are sent ahead, in %i pieces", async (pieces) => {
    const client = lab.client();
    const all = ["/1", "/2", "/3"].map((path) => lab.request(path));
    const size = Math.ceil(all.length / pieces);
    for (let at = 0; at < all.length; at += size) {
      client.write(all.slice(at, at + size).join(""));
      await eventually(
        () => lab.heard.length,
        (count) => count > 0,
      );
    }
    for (const path of ["/1", "/2", "/3"]) expect((await client.answer()).body.toString()).toBe(`hello ${path}`);
    expect(new Set(verdicts())).toEqual(new Set(["/1", "/2", "/3"].map((path) => [path, "allow"])));
    client.socket.destroy();
    await lab.idle();
  });

  test("ends its connection where the client wants that", async () => {
    const client = lab.client().write(lab.request("/1", { headers: "Connection: close\r\n" }));
    const { head, body } = await client.answer();
    expect(body.toString()).toBe("hello /1");
    expect(head).toMatch(/\r\nConnection: close$/);
    expect((await client.rest()).length).toBe(0);
    expect(lab.sockets).toBe(0);
    await lab.idle();
  });

  test.each([
    ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 200],
    ["GET", "HTTP/1.1 204 No Content\r\n\r\n", 204],
    ["GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n", 304],
    ["GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200],
    ["HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200],
    ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnot a body", 200],
    ["GET", "HTTP/1.1 204 No Content\r\n\r\nnot a body", 204],
  ])("has no body by %s of %j, and the next one is answered", async (method, answer, status) => {
    lab.answers.set("/bare", answer);
    const client = lab.client().write(lab.request("/bare", { method }));
    expect((await client.answer(method)).status).toBe(status);
    expect((await client.write(lab.request("/next")).answer()).body.toString()).toBe("hello /next");
    expect((await lab.endOf("/bare"))?.receivedBytes).toBe(answer.length);
    expect(lab.sockets).toBe(0);
    client.socket.destroy();
  });

  test.each(["", "Expires: never\r\nX-Sum: 9\r\n"])("brings chunks as they came, with the trailers %j", async (trailers) => {
    const chunks = `5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n${trailers}\r\n`;
    lab.answers.set("/chunks", (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (const one of chunks) socket.write(one);
      socket.end();
    });
    const { head, body } = await lab.ask("/chunks");
    expect(body.toString()).toBe(chunks);
    expect(head).toMatch(/\r\nTransfer-Encoding: chunked\r\nConnection: close$/);
    expect(head.toLowerCase()).not.toContain("content-length");
    expect(lab.sockets).toBe(0);
  });

  test("has an answer until the end of the connection where no length is given", async () => {
    lab.answers.set("/open", `HTTP/1.0 200 OK\r\n\r\n${"x".repeat(100_000)}`);
    const client = lab.client().write(lab.request("/open"));
    const { head, body } = await client.answer();
    expect(head).toBe("HTTP/1.1 200 OK\r\nConnection: close");
    expect(body.length).toBe(100_000);
    expect((await lab.endOf("/open"))?.receivedBytes).toBe(100_000 + "HTTP/1.0 200 OK\r\n\r\n".length);
    await lab.idle();
  });

  test.each([0, 1, 3, 100])("has its answer behind %i interim ones", async (count) => {
    const interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(count);
    for (const isSplit of [false, true]) {
      lab.answers.set("/hints", (socket) => {
        const all = `${interim}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone`;
        if (!isSplit) return void socket.end(all);
        for (const letter of all) socket.write(letter);
        socket.end();
      });
      const { whole } = await lab.ask("/hints");
      expect(whole).toMatch(/^HTTP\/1.1 200 OK\r\nContent-Length: 4\r\n[^]*\r\n\r\ndone$/);
    }
    expect(lab.sockets).toBe(0);
  });

  test.each<[string, string]>([
    ["another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"],
    ["another protocol after a hint", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n"],
    ["more hints than a host has", `${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(101)}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`],
    ["no end of hints", "HTTP/1.1 103 Early Hints\r\n\r\n"],
    ["no HTTP", "SSH-2.0-OpenSSH_9\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n12345"],
    ["no length that is one", "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n12345"],
    ["two codings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
    ["a folded header", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n"],
    ["half a head", "HTTP/1.1 200 OK\r\nContent-Le"],
    ["nothing", ""],
    ["a head over its bound", `HTTP/1.1 200 OK\r\nX: ${"a".repeat(32 * 1024)}\r\nContent-Length: 2\r\n\r\nab`],
    ["a head without end", `HTTP/1.1 200 OK\r\nX: ${"a".repeat(500_000)}`],
  ])("is told that it was not answered where the host says %s", async (_, answer) => {
    lab.answers.set("/broken", answer);
    const { status, head, body } = await lab.ask("/broken");
    expect([status, head.includes("(unreachable)")]).toEqual([502, true]);
    expect(JSON.parse(body.toString())).toMatchObject({ code: "unreachable" });
    await lab.endOf("/broken");
    await lab.idle();
    expect(lab.outside.size).toBe(0);
  });

  test("the control: the largest head goes through", async () => {
    const head = (letters: number): string => `HTTP/1.1 200 OK\r\nX: ${"a".repeat(letters)}\r\nContent-Length: 2\r\n\r\n`;
    const letters = 32 * 1024 - head(0).length;
    lab.answers.set("/large", `${head(letters)}ab`);
    expect((await lab.ask("/large")).body.toString()).toBe("ab");
    // Written anew, many small headers are longer than they came.
    lab.answers.set("/many", `HTTP/1.1 200 OK\r\n${"a:\r\n".repeat(8_000)}Content-Length: 2\r\n\r\nab`);
    expect((await lab.ask("/many")).body.toString()).toBe("ab");
    expect(lab.sockets).toBe(0);
  });

  test("goes to the next address where the first one refuses", async () => {
    lab.names.set("allowed.test", ["127.0.0.9", "127.0.0.10", "127.0.0.2"]);
    expect((await lab.ask("/second")).body.toString()).toBe("hello /second");
    expect(await lab.endOf("/second")).toEqual({ sentBytes: lab.heard[0]?.length, receivedBytes: 52 });
    expect(lab.records.filter(({ path, ended }) => path === "/second" && ended !== undefined)).toHaveLength(1);
    expect(lab.sockets).toBe(0);
  });

  test("is told why where no address answers", async () => {
    lab.names.set("allowed.test", ["127.0.0.9", "127.0.0.10"]);
    const { status, head, body } = await lab.ask("/nobody");
    expect([status, head.includes("(unreachable)")]).toEqual([502, true]);
    expect(body.toString()).toContain(`allowed.test:${lab.port} does not answer.`);
    await lab.idle();
  });

  test.each(["HEAD", "GET"])("that is denied by %s is told so, HEAD without a body", async (method) => {
    const client = lab.client().write(lab.request("/", { method, host: "evil.test" }));
    const answer = (await client.rest()).toString("latin1");
    expect(answer).toMatch(/^HTTP\/1.1 403 /);
    expect(answer.endsWith("\r\n\r\n")).toBe(method === "HEAD");
    await lab.idle();
  });

  test("that can't be recorded is refused, and nothing is dialled", async () => {
    lab.failing = true;
    const { status, head } = await lab.ask("/unrecorded");
    expect([status, head.includes("(not_recorded)")]).toEqual([503, true]);
    lab.failing = false;
    expect((await lab.ask("/recorded")).status).toBe(200);
    expect(lab.heard).toHaveLength(1);
  });

  test("leaves at home what is between neighbours, whichever side names it", async () => {
    lab.answers.set(
      "/hops",
      "HTTP/1.1 200 OK\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nKeep-Alive: timeout=1\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-Stays: 2\r\nContent-Length: 2\r\n\r\nok",
    );
    const { head } = await lab.ask("/hops", {
      headers:
        "Proxy-Authorization: Basic abc\r\nProxy-Connection: x\r\nKeep-Alive: 3\r\nTE: trailers\r\nHTTP2-Settings: x\r\nX-Stays: 4\r\n",
    });
    expect(head.split("\r\n").slice(1)).toEqual(["X-Stays: 2", "Content-Length: 2", "Connection: keep-alive", "Keep-Alive: timeout=15"]);
    expect(lab.heard[0]?.split("\r\n").slice(1, -2)).toEqual([`Host: ${lab.at}`, "X-Stays: 4", "Connection: close"]);
    expect(lab.sockets).toBe(0);
    // What names headers of its own is read by the server, and goes out without them.
    await lab.ask("/named", { headers: "Connection: X-Mine\r\nX-Mine: 1\r\nX-Stays: 5\r\n" });
    expect(lab.heard[1]?.split("\r\n").slice(1, -2)).toEqual([`Host: ${lab.at}`, "X-Stays: 5", "Connection: close"]);
    expect(lab.sockets).toBe(1);
  });

  test.each(["known length", "until the end"])("brings each byte of a large answer to a slow client (%s)", async (how) => {
    const length = how === "known length" ? `Content-Length: ${LARGE.length}\r\n` : "";
    const head = `HTTP/1.1 200 OK\r\n${length}\r\n`;
    lab.answers.set("/large", Buffer.concat([Buffer.from(head), LARGE]));
    const socket = lab.dial();
    socket.pause();
    socket.write(lab.request("/large"));
    let got = Buffer.alloc(0);
    const chunks: Buffer[] = [];
    let size = 0;
    // Stands still for a while before each piece.
    while (size < LARGE.length) {
      const piece = (socket.read() ?? Buffer.alloc(0)) as Buffer;
      chunks.push(piece);
      size += piece.length;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    got = Buffer.concat(chunks);
    expect(got.subarray(got.indexOf("\r\n\r\n") + 4).equals(LARGE)).toBe(true);
    expect((await lab.endOf("/large"))?.receivedBytes).toBe(head.length + LARGE.length);
    expect(lab.sockets).toBe(0);
    socket.destroy();
    await lab.idle();
  });

  test("waits on a kept connection for as long as others do, and no longer", async () => {
    const before = { ...LIMITS };
    Object.assign(LIMITS, { egressHeadMs: 300 });
    try {
      const client = lab.client();
      await client.write(lab.request("/1")).answer();
      expect((await client.rest()).length).toBe(0);
      await lab.idle();
    } finally {
      Object.assign(LIMITS, before);
    }
  });
});
