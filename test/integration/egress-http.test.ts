/** PX of the threat list, over HTTP: the proxy by itself, with controls that the same bytes do reach a server without it. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { eventually } from "../support/server.ts";
import { ProxyLab, type Origin } from "../support/proxy-lab.ts";

describe("requests through the proxy", () => {
  const lab = new ProxyLab();
  let allowed: Origin;
  let other: Origin;
  const get = (host: string, extra = "", path = "/"): string =>
    `GET http://${host}${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${extra}\r\n`;
  const at = (name: string, origin: Origin = allowed): string => `${name}:${origin.port}`;

  beforeAll(async () => {
    allowed = await lab.web("127.0.0.2");
    other = await lab.web("127.0.0.3");
    lab.names.set("allowed.test", ["127.0.0.2"]);
    lab.names.set("other.test", ["127.0.0.3"]);
    lab.opened.push({ host: "allowed.test", ports: [allowed.port], tcp: false });
  });
  beforeEach(async () => {
    await lab.set({});
    allowed.heard.length = other.heard.length = lab.asked.length = lab.records.length = 0;
    lab.failing = false;
  });
  afterAll(() => lab.close());

  test("an allowed request arrives as it was sent, and is recorded with its bytes (NET-3)", async () => {
    const answer = await lab.say(
      `POST http://${at("allowed.test")}/a?b=c HTTP/1.1\r\nHost: ${at("allowed.test")}\r\nContent-Length: 5\r\nConnection: close\r\n\r\n12345`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(answer).toContain("hello from 127.0.0.2");
    expect(allowed.heard).toEqual([`POST /a?b=c ${at("allowed.test")} 12345`]);
    await eventually(
      () => lab.records.length,
      (count) => count === 2,
    );
    expect(lab.records[0]).toMatchObject({
      sandbox: "one",
      host: "allowed.test",
      port: allowed.port,
      verdict: "allow",
      protocol: "http",
      method: "POST",
      path: "/a?b=c",
      address: "127.0.0.2",
    });
    expect(lab.records[1]?.ended?.sentBytes).toBeGreaterThan(50);
    expect(lab.records[1]?.ended?.receivedBytes).toBeGreaterThan(50);
  });

  test("NW-06: a denied name is told why, and no DNS server is asked for it", async () => {
    const answer = await lab.say(get("evil.test"));
    expect(answer).toMatch(/^HTTP\/1.1 403 Forbidden \(host_not_allowed\): [^\r]+\r\n/);
    const body = JSON.parse(answer.split("\r\n\r\n")[1] ?? "") as unknown;
    expect(body).toEqual({ code: "host_not_allowed", error: expect.stringContaining("network.allow") });
    expect(lab.asked).toEqual([]);
    expect(lab.records).toMatchObject([{ verdict: "deny", code: "host_not_allowed", host: "evil.test" }]);
  });

  test.each([
    "a\0b.test",
    "allowed.test%00.evil.test",
    "user@allowed.test",
    "allowed.test\\evil",
    "allowed.test.",
    "all owed.test",
    `${"a".repeat(300)}.test`,
    "[fe80::1%25lo]",
    "0x7f.1",
    "１27.0.0.1",
  ])("PX-02: the host %j is refused before any rule looks at it", async (host) => {
    const bytes = Buffer.from(`GET http://${host}:${allowed.port}/ HTTP/1.1\r\nHost: ${host}:${allowed.port}\r\n\r\n`);
    expect((await lab.sayBytes(bytes)).toString("latin1")).toMatch(/^HTTP\/1.1 400 /);
    expect((await lab.sayBytes(Buffer.from(`CONNECT ${host}:443 HTTP/1.1\r\nHost: x\r\n\r\n`))).toString("latin1")).toMatch(
      /^HTTP\/1.1 400 /,
    );
    expect([lab.asked, lab.records, allowed.heard]).toEqual([[], [], []]);
  });

  test.each(["080", "+80", "80.0", "99999", "0", "８０"])("the port %j is refused", async (port) => {
    expect(await lab.say(`GET http://allowed.test:${port}/ HTTP/1.1\r\nHost: allowed.test:${port}\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /);
  });

  test("PX-03: an allowed name that leads to a private address or to metadata is refused", async () => {
    await lab.set({ mode: "public" });
    for (const [address, code] of [
      ["127.0.0.2", "private_address"],
      ["10.1.2.3", "private_address"],
      ["::ffff:127.0.0.2", "private_address"],
      ["64:ff9b::7f00:2", "private_address"],
      ["169.254.169.254", "metadata"],
      ["::ffff:169.254.169.254", "metadata"],
    ] as const) {
      lab.names.set("sly.example", [address]);
      expect(await lab.say(get("sly.example")), address).toContain(`(${code})`);
    }
    expect(allowed.heard).toEqual([]);
    // Opened by the user it is reached, so the address is what was refused.
    expect(await lab.say(get(at("allowed.test")))).toContain("hello");
  });

  test("NW-04: not even the user's own config opens a metadata service", async () => {
    lab.opened.push({ host: "meta.test", ports: [80], tcp: false });
    lab.names.set("meta.test", ["169.254.169.254"]);
    expect(await lab.say(get("meta.test"))).toContain("(metadata)");
    expect(await lab.say(get("metadata.google.internal"))).toContain("(metadata)");
  });

  test("PX-04: one bad address among good ones spoils them all, and a name is asked for once", async () => {
    await lab.set({ mode: "public", ports: [80, allowed.port] });
    lab.names.set("mixed.example", ["8.8.8.8", "127.0.0.2"]);
    expect(await lab.say(get(at("mixed.example")))).toContain("(private_address)");
    let turn = 0;
    lab.names.set("rebind.test", () => [turn++ === 0 ? "192.0.2.1" : "127.0.0.2"]);
    lab.opened.push({ host: "rebind.test", ports: [allowed.port], tcp: false });
    const socket = lab.dial();
    socket.write(get(at("rebind.test")));
    await eventually(
      () => lab.records.length,
      (count) => count >= 2,
    );
    socket.destroy();
    expect(lab.records.at(-1)?.address).toBe("192.0.2.1");
    expect(lab.asked.filter((name) => name === "rebind.test")).toHaveLength(1);
    expect(allowed.heard).toEqual([]);
  });

  test("PX-05: a redirect comes back through the proxy and is decided by itself", async () => {
    const sly = await lab.web("127.0.0.2", (_, response) => response.writeHead(302, { location: `http://127.0.0.3:${other.port}/` }).end());
    lab.opened.push({ host: "allowed.test", ports: [sly.port], tcp: false });
    const first = await lab.say(get(at("allowed.test", sly)));
    const location = /location: http:\/\/([^/\r]+)/i.exec(first)?.[1] ?? "";
    expect(location).toBe(`127.0.0.3:${other.port}`);
    expect(await lab.say(get(location))).toContain("(private_address)");
    expect(other.heard).toEqual([]);
  });

  test("PX-09: what two readers could read differently is refused, and nothing of it arrives", async () => {
    const host = at("allowed.test");
    const head = `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n`;
    const tricks: Record<string, string> = {
      "another Host": `GET http://${host}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n`,
      "another port in Host": `GET http://${host}/ HTTP/1.1\r\nHost: allowed.test:1\r\n\r\n`,
      "two Hosts": `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nHost: ${host}\r\n\r\n`,
      "no Host": `GET http://${host}/ HTTP/1.1\r\n\r\n`,
      "length and chunks": `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "chunks and length": `${head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`,
      "two lengths": `${head}Content-Length: 4\r\nContent-Length: 5\r\n\r\n12345`,
      "a list of lengths": `${head}Content-Length: 4, 4\r\n\r\n1234`,
      "a signed length": `${head}Content-Length: +4\r\n\r\n1234`,
      "two codings": `${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
      "chunked twice": `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "a coding that is none": `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
      "a space before the colon": `${head}Content-Length : 4\r\n\r\n1234`,
      "a folded header": `${head}X: a\r\n b\r\nContent-Length: 0\r\n\r\n`,
      "a bare line feed": `GET http://${host}/ HTTP/1.1\nHost: ${host}\n\n`,
      "a NUL in a header": `${head}X: a\0b\r\nContent-Length: 0\r\n\r\n`,
      "a path alone": `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      "an https address": `GET https://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      "a login in the address": `GET http://user:pass@${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    };
    for (const [name, bytes] of Object.entries(tricks)) expect(await lab.say(bytes), name).toMatch(/^HTTP\/1.1 400 /);
    expect(allowed.heard).toEqual([]);
    // The control: the form itself is fine.
    expect(await lab.say(`${head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\nabcd\r\n0\r\n\r\n`)).toContain("200 OK");
    expect(allowed.heard).toEqual([`POST / ${host} abcd`]);
  });

  test("PX-09: broken chunks end the request before its end arrives", async () => {
    const host = at("allowed.test");
    const head = `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    for (const chunks of [
      "4\r\nabcdX\r\n0\r\n\r\n",
      "-1\r\na\r\n",
      "0x4\r\nabcd\r\n0\r\n\r\n",
      "4;\rx\r\nabcd\r\n0\r\n\r\n",
      "ffffffffffffffffff\r\na",
      "4 \r\nabcd\r\n0\r\n\r\n",
    ])
      await lab.say(head + chunks);
    expect(allowed.heard).toEqual([]);
  });

  test("PX-09: the second request of a connection is decided anew, pipelined or not", async () => {
    const first = `GET http://${at("allowed.test")}/1 HTTP/1.1\r\nHost: ${at("allowed.test")}\r\n\r\n`;
    for (const pieces of [[first + get(at("other.test", other))], [first, get(at("other.test", other))]]) {
      const answer = await lab.say(...pieces);
      expect(answer).toContain("hello from 127.0.0.2");
      expect(answer).toContain("(host_not_allowed)");
    }
    expect(other.heard).toEqual([]);
    expect(lab.asked).not.toContain("other.test");
  });

  test("PX-15: headers between neighbours stay there, whichever side names them", async () => {
    const seen = await lab.web("127.0.0.2", (request, response) =>
      response.end(JSON.stringify((request as { rawHeaders: string[] }).rawHeaders)),
    );
    lab.opened.push({ host: "allowed.test", ports: [seen.port], tcp: false });
    const answer = await lab.say(
      get(
        at("allowed.test", seen),
        "Proxy-Authorization: Basic abc\r\nConnection: X-Hop, Host\r\nX-Hop: 1\r\nX-Stays: 2\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n",
      ),
    );
    const names = (JSON.parse(/\[.*\]/.exec(answer)?.[0] ?? "[]") as string[])
      .filter((_, index) => index % 2 === 0)
      .map((name) => name.toLowerCase());
    expect(names.toSorted()).toEqual(["connection", "host", "x-stays"]);
  });

  test("PX-12: the server's own port and the proxy itself are not reached", async () => {
    lab.ownPorts.push(allowed.port);
    expect(await lab.say(get(at("allowed.test")))).toContain("(own_port)");
    lab.ownPorts.length = 0;
    expect(await lab.say(get("127.0.0.1:4098"))).toContain("(private_address)");
    expect(await lab.say(get(at("allowed.test")))).toContain("hello");
  });

  test("a loopback port where reality listens says so and names services", async () => {
    await lab.set({ mode: "public", ports: [5432] });
    expect(await lab.say(get("127.0.0.1:5432"))).toContain("services");
    lab.names.set("localhost", ["127.0.0.1"]);
    expect(await lab.say(get("localhost:5432"))).toContain("services");
  });

  test("what can't be recorded is refused", async () => {
    lab.failing = true;
    expect(await lab.say(get(at("allowed.test")))).toMatch(/^HTTP\/1.1 503 .*\(not_recorded\)/);
    expect(allowed.heard).toEqual([]);
  });

  test("PX-14: a head without end is refused", async () => {
    expect(await lab.say(`GET http://${at("allowed.test")}/ HTTP/1.1\r\nX: ${"a".repeat(2_000_000)}`)).toMatch(
      /^HTTP\/1.1 400 .*too large/s,
    );
  });

  test("PX-14: more connections than allowed are turned away, and another sandbox is not hurt", async () => {
    await lab.set({}, "two");
    const open: Socket[] = [];
    // One by one: a queue of connections that are not accepted yet is short.
    while (open.length < 300) {
      const socket = lab.dial();
      await once(socket, "connect");
      open.push(socket);
    }
    await eventually(
      () => lab.egress.use("one").connections,
      (count) => count > 0,
    );
    expect(lab.egress.use("one").connections).toBeLessThanOrEqual(192);
    const two = lab.dial("two");
    two.write(get(at("allowed.test")));
    expect(String((await once(two, "data"))[0])).toContain("200 OK");
    for (const socket of [...open, two]) socket.destroy();
    await eventually(
      () => lab.egress.use("one").connections,
      (count) => count === 0,
    );
    expect(await lab.say(get(at("allowed.test")))).toContain("hello");
    lab.egress.close("two");
  });

  /** Runs with another limit than the program's own, which would take a test minutes to reach. */
  async function limited(limits: Partial<Record<keyof typeof LIMITS, number>>, work: () => Promise<void>): Promise<void> {
    const before = { ...LIMITS };
    Object.assign(LIMITS, limits);
    try {
      await work();
    } finally {
      Object.assign(LIMITS, before);
    }
  }

  test("PX-14: a head that comes byte by byte has its time, and no more", async () => {
    await limited({ egressHeadMs: 400 }, async () => {
      for (const start of ["", `GET http://${at("allowed.test")}/ HTTP/1.1\r\nHost: ${at("allowed.test")}\r\n\r\n`]) {
        const socket = lab.dial();
        socket.resume();
        socket.write(start);
        const drip = setInterval(() => socket.write("G"), 50);
        const began = performance.now();
        await new Promise((resolve) => socket.once("close", resolve));
        clearInterval(drip);
        expect(performance.now() - began).toBeLessThan(5_000);
      }
    });
  });

  test("PX-14: a body without end is cut when the bytes of the sandbox are used up, and nothing more goes out", async () => {
    const endless = await lab.web("127.0.0.2", (_, response) => {
      const more = (): void => void (response.destroyed || response.write(Buffer.alloc(100_000), more));
      more();
    });
    lab.opened.push({ host: "allowed.test", ports: [endless.port], tcp: false });
    await lab.set({}, "three");
    await limited({ egressBytes: 3_000_000 }, async () => {
      const socket = lab.dial("three");
      let bytes = 0;
      socket.on("data", (chunk) => (bytes += chunk.length));
      socket.write(get(at("allowed.test", endless)));
      await new Promise((resolve) => socket.once("close", resolve));
      expect(bytes).toBeGreaterThan(100_000);
      const next = lab.dial("three");
      next.write(get(at("allowed.test")));
      expect(String((await once(next, "data"))[0])).toContain("(too_many_bytes)");
      next.destroy();
    });
    lab.egress.close("three");
  });

  test("PX-14: more requests than can be recorded are turned away, and told of once", async () => {
    await lab.set({ mode: "off" });
    await lab.set({});
    await limited({ egressRequests: 5 }, async () => {
      for (let count = 0; count < 5; count += 1) expect(await lab.say(get("evil.test"))).toContain("(host_not_allowed)");
      for (let count = 0; count < 5; count += 1) expect(await lab.say(get(at("allowed.test")))).toMatch(/^HTTP\/1.1 429 /);
      expect(lab.records).toHaveLength(6);
    });
    expect(allowed.heard).toEqual([]);
  });

  test("NW-07: names below a pattern can't be used to carry data out without end", async () => {
    await lab.set({ allow: [{ host: "*.wild.test", tcp: false }] });
    await limited({ egressNames: 4 }, async () => {
      for (let count = 0; count < 4; count += 1)
        expect(await lab.say(get(`${"x".repeat(60)}${count}.wild.test`))).toContain("(not_resolved)");
      expect(await lab.say(get("one-more.wild.test"))).toContain("(too_many_names)");
      expect(await lab.say(get(`${"x".repeat(60)}0.wild.test`))).toContain("(not_resolved)");
    });
    expect(lab.asked).not.toContain("one-more.wild.test");
    expect(lab.records.filter(({ code }) => code === "too_many_names")).toHaveLength(1);
  });

  test("a large body goes through whole, both ways", async () => {
    const echo = await lab.web("127.0.0.2", (_, response) => response.end(Buffer.alloc(5_000_000, "x")));
    lab.opened.push({ host: "allowed.test", ports: [echo.port], tcp: false });
    const host = at("allowed.test", echo);
    const answer = await lab.say(
      `PUT http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 3000000\r\nConnection: close\r\n\r\n${"y".repeat(3_000_000)}`,
    );
    expect(answer.length).toBeGreaterThan(5_000_000);
    expect(echo.heard[0]?.length).toBeGreaterThan(3_000_000);
  });

  test("the controls: without the proxy the servers answer every client", async () => {
    const socket = connect(other.port, "127.0.0.3");
    socket.write("GET / HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n");
    expect(String((await once(socket, "data"))[0])).toContain("hello from 127.0.0.3");
    socket.destroy();
  });
});
