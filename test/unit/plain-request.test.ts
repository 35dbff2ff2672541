/** What counts as a plain request, or as one for a tunnel; and whatever counts as one, Node's strict parser reads in the same way. */
import { createServer, type IncomingMessage } from "node:http";
import { duplexPair } from "node:stream";
import { describe, expect, test } from "vitest";
import { endToEnd } from "../../src/rules/network/exchange.ts";
import { parseAuthority } from "../../src/rules/network/host.ts";
import { plainRequest, tunnelRequest } from "../../src/rules/network/plain-request.ts";
import { Randomness } from "../support/randomness.ts";

/** The same run again: VIV_FUZZ_SEED of the failure. */
const SEED = Number(process.env["VIV_FUZZ_SEED"] ?? Date.now() % 2 ** 31);
const TRIES = 100_000;

const plain = (...lines: readonly string[]): ReturnType<typeof plainRequest> =>
  plainRequest(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));
const GET = "GET http://a.test/ HTTP/1.1";

describe("a plain request", () => {
  const base = { host: "a.test", port: 80, method: "GET", path: "/", headers: ["Host", "a.test"], isKept: true };

  test.each<[lines: string[], read: Partial<typeof base>]>([
    [[GET, "Host: a.test"], {}],
    [["HEAD http://a.test/ HTTP/1.1", "Host: a.test"], { method: "HEAD" }],
    [["GET http://a.test HTTP/1.1", "Host: a.test"], {}],
    [["GET http://a.test?a=b HTTP/1.1", "Host: a.test"], { path: "/?a=b" }],
    [["GET http://a.test/x//../y?a=b&c=/%00?~ HTTP/1.1", "Host: a.test"], { path: "/x//../y?a=b&c=/%00?~" }],
    [["GET http://A.Test:8080/ HTTP/1.1", "Host: A.Test:8080"], { port: 8080, headers: ["Host", "A.Test:8080"] }],
    [
      ["GET http://[2001:db8::1]:81/ HTTP/1.1", "Host: [2001:db8::1]:81"],
      { host: "2001:db8::1", port: 81, headers: ["Host", "[2001:db8::1]:81"] },
    ],
    [["GET http://8.8.8.8/ HTTP/1.1", "Host: 8.8.8.8"], { host: "8.8.8.8", headers: ["Host", "8.8.8.8"] }],
    [[GET, "hOST:a.test"], { headers: ["hOST", "a.test"] }],
    [[GET, "Host: a.test", "X:", "Y: \t", "Z:  a \t b\t "], { headers: ["Host", "a.test", "X", "", "Y", "", "Z", "a \t b"] }],
    [[GET, "Host: a.test", "X: 1", "x: 2"], { headers: ["Host", "a.test", "X", "1", "x", "2"] }],
    [[GET, "Host: a.test", "Connection: Close"], { isKept: false }],
    [[GET, "Host: a.test", "connection: keep-alive"], {}],
    [[GET, "Host: a.test", "Proxy-Connection: x", "Keep-Alive: 1", "TE: trailers", "Proxy-Authorization: a"], {}],
  ])("is %j", (lines, read) => {
    expect(plain(...lines)).toEqual({ ...base, ...read });
  });

  test.each<[why: string, lines: string[]]>([
    ["of another method", ["POST http://a.test/ HTTP/1.1", "Host: a.test"]],
    ["of a method in small letters", ["get http://a.test/ HTTP/1.1", "Host: a.test"]],
    ["of an older version", ["GET http://a.test/ HTTP/1.0", "Host: a.test"]],
    ["without a whole address", ["GET / HTTP/1.1", "Host: a.test"]],
    ["by TLS", ["GET https://a.test/ HTTP/1.1", "Host: a.test"]],
    ["with a scheme in large letters", ["GET HTTP://a.test/ HTTP/1.1", "Host: a.test"]],
    ["with a login", ["GET http://u:p@a.test/ HTTP/1.1", "Host: u:p@a.test"]],
    ["with a fragment", ["GET http://a.test/#x HTTP/1.1", "Host: a.test"]],
    ["with two spaces", ["GET  http://a.test/ HTTP/1.1", "Host: a.test"]],
    ["with a space in its path", ["GET http://a.test/a b HTTP/1.1", "Host: a.test"]],
    ["with letters beyond ASCII in its path", ["GET http://a.test/\xe9 HTTP/1.1", "Host: a.test"]],
    ["to a host that is none", ["GET http://0x7f.1/ HTTP/1.1", "Host: 0x7f.1"]],
    ["to a host that ends with a dot", ["GET http://a.test./ HTTP/1.1", "Host: a.test."]],
    ["to a port that is none", ["GET http://a.test:080/ HTTP/1.1", "Host: a.test:080"]],
    ["with an empty port", ["GET http://a.test:/ HTTP/1.1", "Host: a.test:"]],
    ["without Host", [GET, "X: 1"]],
    ["with another Host", [GET, "Host: b.test"]],
    ["with another spelling in Host", [GET, "Host: A.test"]],
    ["with two Hosts", [GET, "Host: a.test", "Host: a.test"]],
    ["with a length", [GET, "Host: a.test", "Content-Length: 0"]],
    ["with chunks", [GET, "Host: a.test", "transfer-encoding: chunked"]],
    ["with trailers", [GET, "Host: a.test", "Trailer: X"]],
    ["that wants another protocol", [GET, "Host: a.test", "Upgrade: h2c"]],
    ["that expects something", [GET, "Host: a.test", "Expect: 100-continue"]],
    ["that names headers for its neighbour", [GET, "Host: a.test", "Connection: X"]],
    ["with two words for its neighbour", [GET, "Host: a.test", "Connection: close, keep-alive"]],
    ["with two Connections", [GET, "Host: a.test", "Connection: close", "Connection: close"]],
    ["with a folded header", [GET, "Host: a.test", "X: a", " b"]],
    ["with a space before the colon", [GET, "Host: a.test", "X : a"]],
    ["with a header without a name", [GET, "Host: a.test", ": a"]],
    ["with a header without a colon", [GET, "Host: a.test", "X"]],
    ["with a NUL", [GET, "Host: a.test", "X: a\0"]],
    ["with a bare line feed", [GET, "Host: a.test", "X: a\nY: b"]],
    ["with a bare carriage return", [GET, "Host: a.test", "X: a\rY: b"]],
    ["with letters beyond ASCII in a header", [GET, "Host: a.test", "X: \xe9"]],
    ["with another one behind it", [GET, "Host: a.test", "", GET, "Host: a.test"]],
    ["with an empty line before it", ["", GET, "Host: a.test"]],
  ])("is not one %s", (_, lines) => {
    expect(plain(...lines)).toBeUndefined();
  });

  test("is whole, and alone", () => {
    const whole = `${GET}\r\nHost: a.test\r\n\r\n`;
    expect(plainRequest(Buffer.from(whole))).toBeDefined();
    for (let length = 0; length < whole.length; length += 1) expect(plainRequest(Buffer.from(whole.slice(0, length)))).toBeUndefined();
    for (const more of ["x", "\r\n", "\0", whole]) expect(plainRequest(Buffer.from(whole + more))).toBeUndefined();
  });
});

describe("a request for a tunnel", () => {
  const read = (...lines: readonly string[]): ReturnType<typeof tunnelRequest> =>
    tunnelRequest(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));

  test.each<[lines: string[], host: string, port: number]>([
    [["CONNECT a.test:443 HTTP/1.1", "Host: a.test:443"], "a.test", 443],
    [["CONNECT A.Test:8443 HTTP/1.1", "Host: x", "Proxy-Connection: Keep-Alive", "User-Agent: curl/8.5.0"], "a.test", 8443],
    [["CONNECT a.test:443 HTTP/1.0"], "a.test", 443],
    [["CONNECT [2001:db8::1]:443 HTTP/1.1", "Proxy-Authorization: Basic abc"], "2001:db8::1", 443],
  ])("is %j", (lines, host, port) => {
    expect(read(...lines)).toEqual({ host, port });
  });

  test.each<[why: string, lines: string[]]>([
    ["without a port", ["CONNECT a.test HTTP/1.1"]],
    ["to a port that is none", ["CONNECT a.test:0 HTTP/1.1"]],
    ["to a host that is none", ["CONNECT 0x7f.1:443 HTTP/1.1"]],
    ["with a path", ["CONNECT a.test:443/ HTTP/1.1"]],
    ["with a whole address", ["CONNECT http://a.test:443 HTTP/1.1"]],
    ["with a login", ["CONNECT u@a.test:443 HTTP/1.1"]],
    ["of another version", ["CONNECT a.test:443 HTTP/2.0"]],
    ["with two Hosts", ["CONNECT a.test:443 HTTP/1.1", "Host: a", "Host: a"]],
    ["with a length", ["CONNECT a.test:443 HTTP/1.1", "Content-Length: 0"]],
    ["with chunks", ["CONNECT a.test:443 HTTP/1.1", "Transfer-Encoding: chunked"]],
    ["with a bare line feed", ["CONNECT a.test:443 HTTP/1.1", "X: a\nY: b"]],
    ["by another method", ["connect a.test:443 HTTP/1.1"]],
    ["with something behind it", ["CONNECT a.test:443 HTTP/1.1", "", "x"]],
  ])("is not one %s", (_, lines) => {
    expect(read(...lines)).toBeUndefined();
  });
});

interface StrictlyRead {
  readonly request: IncomingMessage;
  readonly isKept: boolean;
  readonly isWhole: boolean;
}

describe(`broken requests (seed ${SEED})`, () => {
  const random = new Randomness(SEED);
  const seeds = [
    `${GET}\r\nHost: a.test\r\n\r\n`,
    "GET http://a.test:8080/x?y=z HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\nUser-Agent: curl/8.5.0\r\nConnection: close\r\n\r\n",
    "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nUser-Agent: curl/8.5.0\r\nProxy-Connection: Keep-Alive\r\n\r\n",
    "CONNECT [::1]:1 HTTP/1.0\r\n\r\n",
    "HEAD http://[::1]:1/~a HTTP/1.1\r\nAccept-Encoding: gzip, deflate\r\nhost: [::1]:1\r\nProxy-Connection: Keep-Alive\r\n\r\n",
  ];
  const tokens = [
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    "\t",
    ":",
    ",",
    "\r\n\r\n",
    "\x7f",
    "\x80",
    "\xff",
    '"',
    "\\",
    "^",
    "{",
    "|",
    "`",
    "@",
    "%00",
    "#",
    "?",
    "//",
  ];
  const lines = [
    "Host: a.test\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: keep-alive\r\n",
    "Connection: upgrade\r\n",
    "Upgrade: websocket\r\n",
    "Expect: 100-continue\r\n",
    "Keep-Alive: 1\r\n",
    "X-Y_Z.~!#$%&'*+^`|: a\t b \r\n",
    ":\r\n",
    " folded\r\n",
  ];

  function mutated(): Buffer {
    let text = random.of(seeds);
    for (let change = random.below(4); change >= 0; change -= 1) {
      const at = random.below(text.length + 1);
      const kind = random.below(6);
      const line = text.indexOf("\r\n", at) + 2;
      if (kind === 0) text = `${text.slice(0, at)}${String.fromCharCode(random.below(256))}${text.slice(at + 1)}`;
      else if (kind === 1) text = `${text.slice(0, at)}${random.of(tokens)}${text.slice(at)}`;
      else if (kind === 2) text = `${text.slice(0, at)}${text.slice(at + random.below(8))}`;
      else if (kind === 3) text = `${text.slice(0, line)}${random.of(lines)}${text.slice(line)}`;
      else if (kind === 4) text = `${text.slice(0, at)}${String.fromCharCode(33 + random.below(94))}${text.slice(at)}`;
      else text = `${text.slice(0, at)}${text.slice(Math.max(0, at - random.below(20)))}`;
    }
    return Buffer.from(text, "latin1");
  }

  /** What a server with Node's own settings makes of these bytes: all requests, and whether it found something wrong. */
  function strictly(data: Buffer): Promise<{ readonly read: StrictlyRead[]; readonly isRefused: boolean; readonly body: number }> {
    const read: StrictlyRead[] = [];
    let isRefused = false;
    let body = 0;
    server.removeAllListeners("request").removeAllListeners("clientError").removeAllListeners("connect");
    server.on("connect", (request: IncomingMessage, _, head: Buffer) => {
      read.push({ request, isKept: true, isWhole: true });
      body += head.length;
    });
    server.on("request", (request, response) => {
      request.on("data", (chunk: Buffer) => (body += chunk.length));
      request.on("end", () => read.push({ request, isKept: response.shouldKeepAlive, isWhole: request.complete }));
    });
    server.on("clientError", () => (isRefused = true));
    const [near, far] = duplexPair();
    server.emit("connection", far);
    near.write(data);
    return new Promise((resolve) => {
      setImmediate(() =>
        setImmediate(() => {
          far.destroy();
          near.destroy();
          resolve({ read, isRefused, body });
        }),
      );
    });
  }
  const server = createServer();

  test("are read as Node's parser reads them, where they are taken", async () => {
    let taken = 0;
    for (let turn = 0; turn < TRIES; turn += 1) {
      const data = mutated();
      const request = plainRequest(data);
      if (request === undefined) continue;
      taken += 1;
      const { read, isRefused, body } = await strictly(data);
      const [only] = read;
      const shown = JSON.stringify(data.toString("latin1"));
      expect([read.length, isRefused, body, only?.isWhole], shown).toEqual([1, false, 0, true]);
      const { method, url = "", rawHeaders, headers } = only?.request ?? ({} as Partial<IncomingMessage> & { rawHeaders: string[] });
      const authority = headers?.host ?? "";
      const target = url.slice(`http://${authority}`.length);
      expect(url.startsWith(`http://${authority}`), shown).toBe(true);
      expect(request, shown).toEqual({
        ...parseAuthority(authority, 80),
        method,
        path: target.startsWith("/") ? target : `/${target}`,
        headers: endToEnd(rawHeaders),
        isKept: only?.isKept,
      });
    }
    // The control: much of what was invented is good.
    expect(taken).toBeGreaterThan(TRIES / 50);
  });

  test("for a tunnel are read as Node's parser reads them, where they are taken", async () => {
    let taken = 0;
    for (let turn = 0; turn < TRIES; turn += 1) {
      const data = mutated();
      const to = tunnelRequest(data);
      if (to === undefined) continue;
      taken += 1;
      const { read, isRefused, body } = await strictly(data);
      const shown = JSON.stringify(data.toString("latin1"));
      expect([read.length, isRefused, body], shown).toEqual([1, false, 0]);
      expect([read[0]?.request.method, parseAuthority(read[0]?.request.url ?? "")], shown).toEqual(["CONNECT", to]);
    }
    expect(taken).toBeGreaterThan(TRIES / 50);
  });

  test("the control: that parser says so where it takes something else", async () => {
    expect(await strictly(Buffer.from(`${GET}\r\nHost: a.test\r\n\r\n${GET}\r\nHost: a.test\r\n\r\n`))).toMatchObject({ read: [{}, {}] });
    expect(await strictly(Buffer.from(`${GET}\r\nHost : a.test\r\n\r\n`))).toMatchObject({ read: [], isRefused: true });
    expect((await strictly(Buffer.from(`${GET}\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhel`))).body).toBe(3);
  });
});
