/** PX of the threat list, for connections that carry something else: CONNECT, SOCKS5, and names dialled without the proxy. */
import { once } from "node:events";
import { createServer as createHttps } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { connect as connectTls, getCACertificates, setDefaultCACertificates, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../support/server.ts";
import { certificate } from "../support/certificates.ts";
import { ProxyLab, type Origin } from "../support/proxy-lab.ts";

/** How a tunnel is asked for, so that one part or the other of the proxy carries it: the server reads what is not plain by itself. */
const WAYS = [
  ["the mover", ""],
  ["the server", "Expect: nothing\r\n"],
] as const;

describe.each(WAYS)("tunnels through the proxy, by %s", (by, header) => {
  const lab = new ProxyLab();
  let secure: Origin;
  let plain: Origin;
  let web: Origin;

  beforeAll(async () => {
    secure = await lab.tls("127.0.0.2", "allowed.test");
    plain = await lab.tcp("127.0.0.2");
    web = await lab.web("127.0.0.2");
    lab.names.set("allowed.test", ["127.0.0.2"]);
    lab.names.set("raw.test", ["127.0.0.2"]);
    lab.opened.push(
      { host: "allowed.test", ports: [secure.port, plain.port, web.port], tcp: false },
      { host: "raw.test", ports: [plain.port], tcp: true },
    );
    lab.opened.push({ host: "127.0.0.2", ports: [secure.port, web.port], tcp: false });
  });
  beforeEach(async () => {
    await lab.set({});
    secure.heard.length = plain.heard.length = web.heard.length = lab.asked.length = lab.records.length = 0;
  });
  afterAll(() => lab.close());

  /** A tunnel that the proxy said yes to. */
  async function tunnel(host: string, port: number): Promise<Socket> {
    const socket = lab.dial();
    socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n${header}\r\n`);
    expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1.1 200 /);
    return socket;
  }

  async function secured(socket: Socket, servername: string | undefined): Promise<TLSSocket> {
    const tls = connectTls({ socket, rejectUnauthorized: false, ...(servername === undefined ? {} : { servername }) });
    tls.on("error", () => undefined);
    return tls;
  }

  /** How a tunnel ends in which these bytes are said first. */
  async function ends(socket: Socket, bytes: string): Promise<string> {
    let answer = "";
    socket.on("data", (data) => (answer += data.toString("latin1")));
    socket.write(bytes);
    await new Promise((resolve) => socket.once("close", resolve));
    return answer;
  }

  const denials = (): (string | undefined)[] => lab.records.filter(({ verdict }) => verdict === "deny").map(({ code }) => code);

  test("TLS under the name that was asked for goes through", async () => {
    const tls = await secured(await tunnel("allowed.test", secure.port), "allowed.test");
    tls.write("hello");
    expect(String((await once(tls, "data"))[0])).toBe("allowed.test heard 5");
    tls.destroy();
    await eventually(
      () => lab.records.at(-1)?.ended?.receivedBytes ?? 0,
      (bytes) => bytes > 100,
    );
  });

  test("PX-16: TLS under another name, without one, or by address does not", async () => {
    for (const name of ["evil.test", undefined, "sub.allowed.test"]) {
      const tls = await secured(await tunnel("allowed.test", secure.port), name);
      tls.write("hello");
      await new Promise((resolve) => tls.once("close", resolve));
      expect(denials(), String(name)).toEqual(["wrong_tls_name"]);
      lab.records.length = 0;
    }
    const tls = await secured(await tunnel("127.0.0.2", secure.port), undefined);
    await new Promise((resolve) => tls.once("close", resolve));
    expect(denials()).toEqual(["wrong_tls_name"]);
    expect(secure.heard).toEqual([]);
  });

  test("PX-07: what is not TLS does not go through, unless the rule says tcp", async () => {
    for (const bytes of [
      "SSH-2.0-OpenSSH_9.2\r\n",
      "\x00\x01\x02\x03raw bytes of something",
      `CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n`,
      "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
      "EHLO sandbox and more\r\n",
    ]) {
      expect(await ends(await tunnel("allowed.test", plain.port), bytes), bytes).toBe("");
      await eventually(
        () => lab.records.filter(({ code }) => code === "not_tls").length,
        (count) => count > 0,
      );
      lab.records.length = 0;
    }
    expect(plain.heard).toEqual([]);
    const raw = await tunnel("raw.test", plain.port);
    raw.write("SSH-2.0-OpenSSH_9.2\r\n");
    expect(String((await once(raw, "data"))[0])).toBe("heard 21");
    raw.destroy();
  });

  test("PX-08: no port but those that are open", async () => {
    for (const port of [22, 25, 6379])
      expect(await lab.say(`CONNECT allowed.test:${port} HTTP/1.1\r\nHost: x\r\n${header}\r\n`)).toMatch(/^HTTP\/1.1 403 /);
    expect(lab.asked).toEqual([]);
  });

  test("a host that is not there is told before the client speaks", async () => {
    lab.opened.push({ host: "nowhere.test", ports: [443], tcp: false });
    expect(await lab.say(`CONNECT nowhere.test:443 HTTP/1.1\r\nHost: x\r\n${header}\r\n`)).toMatch(/^HTTP\/1.1 502 .*not_resolved/);
    lab.names.set("nowhere.test", ["127.0.0.9"]);
    expect(await lab.say(`CONNECT nowhere.test:443 HTTP/1.1\r\nHost: x\r\n${header}\r\n`)).toMatch(/^HTTP\/1.1 502 .*unreachable/);
  });

  test("NET-2: a change of the rules ends tunnels that are no longer allowed, and no others", async () => {
    const one = await secured(await tunnel("allowed.test", secure.port), "allowed.test");
    const raw = await tunnel("raw.test", plain.port);
    for (const socket of [one, raw]) {
      socket.write("hello");
      await once(socket, "data");
    }
    const ended = new Promise((resolve) => one.once("close", resolve));
    const began = performance.now();
    await lab.set({ production: ["allowed.test"] });
    await ended;
    expect(performance.now() - began).toBeLessThan(5_000);
    raw.write("again");
    expect(String((await once(raw, "data"))[0])).toBe("heard 5");
    const rawEnded = new Promise((resolve) => raw.once("close", resolve));
    await lab.set({ mode: "off" });
    await rawEnded;
  });

  test("NET-2: a tunnel in which nothing was said yet falls under the rules of the moment it speaks", async () => {
    const socket = await tunnel("allowed.test", secure.port);
    await lab.set({ production: ["allowed.test"] });
    const tls = await secured(socket, "allowed.test");
    tls.write("hello");
    await new Promise((resolve) => tls.once("close", resolve));
    // The mover's ends before it speaks.
    expect(denials()).toEqual(by === "the mover" ? [] : ["production"]);
    expect(secure.heard).toEqual([]);
  });

  test("PX-15: TLS that is opened carries plain requests alone: no WebSocket, no HTTP/2, no other protocol", async () => {
    const heard: string[] = [];
    const own = certificate(lab.folder, "bound.test");
    const origin = createHttps(own, (request, response) => {
      heard.push(`${request.method} ${request.url} ${request.headers.upgrade ?? "-"}`);
      response.end("plain");
    }).listen(0, "127.0.0.2");
    origin.on("upgrade", (_, socket) => {
      heard.push("upgraded");
      socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    });
    await once(origin, "listening");
    const { port } = origin.address() as AddressInfo;
    lab.names.set("bound.test", ["127.0.0.2"]);
    lab.opened.push({ host: "bound.test", ports: [port], tcp: false });
    const defaults = getCACertificates("default");
    setDefaultCACertificates([...defaults, own.cert.toString()]);
    const talk = async (bytes: string): Promise<{ answer: string; protocol: string | false | null }> => {
      const socket = await tunnel("bound.test", port);
      const tls = connectTls({ socket, servername: "bound.test", rejectUnauthorized: false, ALPNProtocols: ["h2", "http/1.1"] });
      tls.on("error", () => undefined);
      await once(tls, "secureConnect");
      const answer = await ends(tls, bytes);
      return { answer, protocol: tls.alpnProtocol };
    };
    const upgrade = (to: string): string =>
      `GET /up HTTP/1.1\r\nHost: bound.test:${port}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${to}\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n`;
    try {
      // The control: the host itself says yes, where the proxy does not open the connection.
      expect((await talk(upgrade("websocket"))).answer).toMatch(/^HTTP\/1.1 101 /);
      heard.length = 0;
      lab.interceptor = {
        wants: (host) => host === "bound.test",
        credentials: async () => ({ key: own.key.toString(), cert: own.cert.toString() }),
        permit: async () => undefined,
        fill: (_, headers) => ({ headers, hidden: [], used: [] }),
        record: async () => undefined,
      };
      const ordinary = await talk(`GET /plain HTTP/1.1\r\nHost: bound.test:${port}\r\nConnection: close\r\n\r\n`);
      expect(ordinary).toMatchObject({ answer: expect.stringMatching(/^HTTP\/1.1 200 [^]*plain/), protocol: "http/1.1" });
      for (const bytes of [
        upgrade("websocket"),
        upgrade("h2c"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n",
      ])
        expect((await talk(bytes)).answer, bytes).not.toMatch(/^HTTP\/1.1 (101|200)/);
      expect(heard).toEqual(["GET /plain -"]);
    } finally {
      lab.interceptor = undefined;
      setDefaultCACertificates(defaults);
      origin.close();
      origin.closeAllConnections();
    }
  });

  test("a client that hangs up while it is decided on is noticed, however it asked; one that waits gets through with what it said early", async () => {
    const requests = {
      connect: Buffer.from(`CONNECT allowed.test:${secure.port} HTTP/1.1\r\nHost: x\r\n${header}\r\n`),
      socks: Buffer.concat([
        Buffer.of(5, 1, 0, 5, 1, 0, 3, 12),
        Buffer.from("allowed.test"),
        Buffer.of(secure.port >> 8, secure.port & 255),
      ]),
      direct: Buffer.from(`\x02allowed.test:${secure.port}\n\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00`),
    };
    try {
      for (const bytes of Object.values(requests))
        for (const leave of ["end", "destroy"] as const) {
          const asked = Promise.withResolvers<void>();
          const noticed = new Promise<void>((resolve) => {
            lab.judge = async (_, __, ___, signal) => {
              asked.resolve();
              await new Promise((heard) => signal?.addEventListener("abort", heard));
              resolve();
              return undefined;
            };
          });
          const socket = lab.dial();
          socket.resume();
          socket.write(bytes);
          await asked.promise;
          socket[leave]();
          await noticed;
          socket.destroy();
        }
      expect(secure.heard).toEqual([]);
      lab.judge = () => new Promise((resolve) => setTimeout(() => resolve(undefined), 100));
      const tls = await secured(await tunnel("allowed.test", secure.port), "allowed.test");
      tls.write("hello");
      expect(String((await once(tls, "data"))[0])).toBe("allowed.test heard 5");
      tls.destroy();
      const early = await lab.say(
        `\x02allowed.test:${web.port}\nGET /early HTTP/1.1\r\nHost: allowed.test:${web.port}\r\nConnection: close\r\n\r\n`,
      );
      expect(early).toContain("hello from 127.0.0.2");
    } finally {
      lab.judge = undefined;
    }
  });

  describe("SOCKS5", () => {
    const greeting = Buffer.of(5, 1, 0);
    const ask = (command: number, type: number, address: Buffer, port: number): Buffer =>
      Buffer.concat([Buffer.of(5, command, 0, type), address, Buffer.of(port >> 8, port & 255)]);
    const named = (name: string): Buffer => Buffer.concat([Buffer.of(Buffer.byteLength(name, "latin1")), Buffer.from(name, "latin1")]);
    const reply = async (request: Buffer): Promise<number | undefined> => (await lab.sayBytes(greeting, request))[3];

    test("PX-10: names and addresses are decided like everywhere", async () => {
      const socket = lab.dial();
      socket.write(greeting);
      await once(socket, "data");
      socket.write(ask(1, 3, named("raw.test"), plain.port));
      expect(((await once(socket, "data"))[0] as Buffer)[1]).toBe(0);
      socket.write("hello");
      expect(String((await once(socket, "data"))[0])).toBe("heard 5");
      socket.destroy();
      for (const host of ["evil.test", "allowed.test\0.evil.test", "localhost\0.allowed.test", "all owed.test", "a".repeat(255), ""])
        expect(await reply(ask(1, 3, named(host), 443)), host).toBe(2);
      expect(await reply(ask(1, 1, Buffer.of(127, 0, 0, 1), 443))).toBe(2);
      expect(await reply(ask(1, 1, Buffer.of(169, 254, 169, 254), 80))).toBe(2);
      expect(await reply(ask(1, 4, Buffer.from("00000000000000000000ffff7f000001", "hex"), 80))).toBe(2);
      expect(await reply(ask(1, 3, named("raw.test"), 0))).toBe(2);
      expect(lab.asked).toEqual(["raw.test"]);
    });

    test("PX-10: BIND, UDP ASSOCIATE, unknown commands and logins are refused", async () => {
      for (const command of [2, 3, 9]) expect(await reply(ask(command, 3, named("raw.test"), plain.port)), String(command)).toBe(7);
      expect(await reply(ask(1, 9, named("raw.test"), plain.port))).toBe(8);
      expect([...(await lab.sayBytes(Buffer.of(5, 1, 2)))]).toEqual([5, 255]);
    });

    test("PX-07: what it carries is looked at, and plain HTTP is taken apart", async () => {
      const speak = async (bytes: string, port: number): Promise<string> =>
        (await lab.say(greeting, ask(1, 3, named("allowed.test"), port), bytes)).slice(12);
      expect(await speak(`GET /a HTTP/1.1\r\nHost: allowed.test:${web.port}\r\nConnection: close\r\n\r\n`, web.port)).toContain(
        "hello from 127.0.0.2",
      );
      expect(await speak(`GET /a HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n`, web.port)).toMatch(/^HTTP\/1.1 400 /);
      expect(
        await speak(`GET http://evil.test/a HTTP/1.1\r\nHost: allowed.test:${web.port}\r\nConnection: close\r\n\r\n`, web.port),
      ).toMatch(/^HTTP\/1.1 400 /);
      expect(await speak("SSH-2.0-OpenSSH_9.2\r\n", plain.port)).toBe("");
      expect(web.heard).toHaveLength(1);
      expect(plain.heard).toEqual([]);
    });
  });

  describe("names dialled without the proxy", () => {
    test("lead to the host, if the rules allow it", async () => {
      expect(
        await lab.say(`\x02allowed.test:${web.port}\nGET /d HTTP/1.1\r\nHost: allowed.test:${web.port}\r\nConnection: close\r\n\r\n`),
      ).toContain("hello from 127.0.0.2");
      expect(await lab.say("\x02evil.test:443\nhello")).toBe("");
      expect(await lab.say("\x02evil.test:80\nGET / HTTP/1.1\r\n\r\n")).toContain("(host_not_allowed)");
      expect(await lab.say("\x02evil\0.test:80\nGET / HTTP/1.1\r\n\r\n")).toBe("");
      expect(await lab.say(`\x02${"a".repeat(1000)}`)).toBe("");
      expect(lab.asked).toEqual(["allowed.test"]);
    });
  });

  test("whatever bytes come first, the proxy answers others", async () => {
    let seed = 3;
    const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31);
    const starts = [
      "",
      "\x05\x01\x00\x05\x01\x00\x03",
      "\x02allowed.test:",
      "CONNECT allowed.test:443 HTTP/1.1\r\n",
      "GET http://allowed.test/ HTTP/1.1\r\nHost: ",
      "\x04\x01",
    ];
    const until = performance.now() + 3_000;
    let rounds = 0;
    while (performance.now() < until) {
      const sockets = Array.from({ length: 10 }, () => lab.dial());
      for (const socket of sockets) {
        const noise = Buffer.from(Array.from({ length: random() % 200 }, () => random() % 256));
        socket.end(Buffer.concat([Buffer.from(starts[random() % starts.length] ?? "", "latin1"), noise]));
        socket.resume();
      }
      await new Promise((resolve) => setImmediate(resolve));
      for (const socket of sockets) socket.destroy();
      rounds += 1;
    }
    expect(rounds).toBeGreaterThan(20);
    // A door with a full queue takes nobody until what stands there is answered.
    const socket = await eventually(
      () =>
        tunnel("allowed.test", secure.port).catch((error: NodeJS.ErrnoException) =>
          error.code === "EAGAIN" ? undefined : Promise.reject(error),
        ),
      (opened) => opened !== undefined,
    );
    if (socket === undefined) throw new Error("no tunnel");
    const tls = await secured(socket, "allowed.test");
    tls.write("hello");
    expect(String((await once(tls, "data"))[0])).toBe("allowed.test heard 5");
    tls.destroy();
  });
});
