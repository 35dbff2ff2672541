import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { Client } from "../../src/interfaces/client/client.ts";
import { startApi, TOKEN, type ApiServer } from "../support/api-server.ts";
import { rawRequest, request, type RawAnswer } from "../support/raw-http.ts";
import { workMs } from "../support/work.ts";

let api: ApiServer;

beforeAll(async () => {
  api = await startApi();
});

afterAll(() => api.close());

beforeEach(() => {
  api.engine.calls.length = 0;
});

/** Over loopback, with the headers of an honest caller unless changed. */
function tcp(line: string, changes: Readonly<Record<string, string | undefined>> = {}, body = ""): Promise<RawAnswer> {
  const headers = { host: `127.0.0.1:${api.port}`, authorization: `Bearer ${TOKEN}`, ...changes };
  const present = Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined));
  return rawRequest({ host: "127.0.0.1", port: api.port }, request(line, present, body));
}

function unix(line: string, headers: Readonly<Record<string, string>> = {}, body = ""): Promise<RawAnswer> {
  return rawRequest({ path: api.socketPath }, request(line, { host: "viv", ...headers }, body));
}

const json = { "content-type": "application/json" };
const codeOf = (answer: RawAnswer): string => (JSON.parse(answer.body) as { error: { code: string } }).error.code;

describe("the token (AP-01)", () => {
  it("opens the API over loopback", async () => {
    expect((await tcp("GET /sandboxes")).status).toBe(200);
    const client = new Client({ url: `http://127.0.0.1:${api.port}`, token: TOKEN });
    expect((await client.call("listSandboxes", {})).sandboxes).toHaveLength(1);
    client.close();
  });

  it.each([
    ["is missing", undefined],
    ["is wrong", "Bearer wrong"],
    ["is a prefix of the right one", `Bearer ${TOKEN.slice(0, -1)}`],
    ["is longer than the right one", `Bearer ${TOKEN}x`],
    ["is empty", "Bearer "],
    ["has another scheme", `Basic ${TOKEN}`],
  ])("is refused with 401 when it %s", async (_, authorization) => {
    const answer = await tcp("GET /sandboxes", { authorization });
    expect(answer.status).toBe(401);
    expect(codeOf(answer)).toBe("unauthorized");
    expect(api.engine.calls).toEqual([]);
  });

  it("does not count in a query string", async () => {
    for (const name of ["token", "access_token", "key"])
      expect((await tcp(`GET /sandboxes?${name}=${TOKEN}`, { authorization: undefined })).status).toBe(401);
  });

  it("does not count as a subprotocol of an ordinary request", async () => {
    expect((await tcp("GET /sandboxes", { authorization: undefined, "sec-websocket-protocol": `viv, viv.bearer.${TOKEN}` })).status).toBe(
      401,
    );
  });

  it("is not asked for on the Unix socket", async () => {
    expect((await unix("GET /sandboxes")).status).toBe(200);
  });

  it("is not asked for by the documentation, which still checks where a request comes from", async () => {
    for (const path of ["/docs", "/openapi.json"]) {
      expect((await tcp(`GET ${path}`, { authorization: undefined })).status).toBe(200);
      expect((await tcp(`GET ${path}`, { authorization: undefined, host: "evil.example" })).status).toBe(403);
    }
  });
});

describe("a page of another origin in a browser (AP-02)", () => {
  it.each([
    ["a simple POST of text", "POST /prune", { origin: "http://evil.example", "content-type": "text/plain" }],
    ["a form", "POST /prune", { origin: "http://evil.example", "content-type": "application/x-www-form-urlencoded" }],
    ["an opaque origin", "POST /prune", { origin: "null", "content-type": "text/plain" }],
    ["a GET without CORS", "GET /sandboxes", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }],
    ["a page of another port", "GET /sandboxes", { "sec-fetch-site": "same-site" }],
    ["a preflight", "OPTIONS /sandboxes", { origin: "http://evil.example", "access-control-request-method": "POST" }],
  ])("is refused with %s, with and without the token", async (_, line, headers) => {
    for (const authorization of [undefined, `Bearer ${TOKEN}`]) {
      const answer = await tcp(line, { ...headers, authorization }, line.startsWith("POST") ? "{}" : "");
      expect(answer.status).toBe(403);
      expect(answer.head).not.toContain("access-control");
    }
    expect(api.engine.calls).toEqual([]);
  });

  it("is refused a body that is not application/json even without an Origin", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"]) {
      expect((await tcp("POST /prune", { "content-type": type }, "{}")).status).toBe(400);
    }
    expect((await tcp("POST /prune", json, "{}")).status).toBe(200);
  });

  it("of the own origin is let in with the token", async () => {
    expect((await tcp("GET /sandboxes", { origin: `http://127.0.0.1:${api.port}`, "sec-fetch-site": "same-origin" })).status).toBe(200);
  });

  it("gets no CORS header, ever", async () => {
    const answer = await tcp("GET /sandboxes", { origin: `http://localhost:${api.port}`, host: `localhost:${api.port}` });
    expect(answer.status).toBe(200);
    expect(answer.head).not.toContain("access-control");
  });
});

describe("the Host header (AP-03)", () => {
  it("is let in as 127.0.0.1 or localhost with the right port", async () => {
    for (const host of ["127.0.0.1", "localhost"]) expect((await tcp("GET /sandboxes", { host: `${host}:${api.port}` })).status).toBe(200);
  });

  it("is refused as anything else", async () => {
    const port = api.port;
    const tricks = [
      "evil.example",
      `evil.example:${port}`,
      "127.0.0.1",
      "localhost",
      "127.0.0.1:1",
      `127.0.0.1:${port}@evil.example`,
      `127.0.0.1.evil.example:${port}`,
      `127.0.0.1:0${port}`,
      `LOCALHOST.:${port}`,
      `0.0.0.0:${port}`,
      `127.0.0.1:${port}, evil.example`,
      "",
    ];
    for (const host of tricks) {
      const { status } = await tcp("GET /sandboxes", { host });
      expect({ host, status }).toEqual({ host, status: 403 });
    }
  });

  it("is refused when it stands twice", async () => {
    const own = `127.0.0.1:${api.port}`;
    const text = `GET /sandboxes HTTP/1.1\r\nhost: ${own}\r\nhost: evil.example\r\nauthorization: Bearer ${TOKEN}\r\nconnection: close\r\n\r\n`;
    expect([400, 403]).toContain((await rawRequest({ host: "127.0.0.1", port: api.port }, text)).status);
  });

  it("is refused with a whole address as the target", async () => {
    expect((await tcp("GET http://evil.example/sandboxes")).status).toBe(403);
    expect((await tcp(`GET http://127.0.0.1:${api.port}/sandboxes`)).status).toBe(403);
    expect(api.engine.calls).toEqual([]);
  });
});

describe("WebSockets and event streams (AP-04)", () => {
  const upgrade = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  };

  function open(protocols: string[], headers: Record<string, string>): Promise<string> {
    const socket = new WebSocket(`ws://127.0.0.1:${api.port}/sandboxes/one/exec`, protocols, { headers });
    return new Promise((resolve) => {
      socket.on("open", () => {
        resolve(`open ${socket.protocol}`);
        socket.terminate();
      });
      socket.on("unexpected-response", (_, answer) => resolve(String(answer.statusCode)));
      socket.on("error", () => undefined);
    });
  }

  it("open with the token in a header or, for browsers, beside the subprotocol, which is not sent back", async () => {
    expect(await open(["viv"], { authorization: `Bearer ${TOKEN}` })).toBe("open viv");
    expect(await open(["viv", `viv.bearer.${TOKEN}`], {})).toBe("open viv");
    expect(await open(["viv", `viv.bearer.${TOKEN}`], { origin: `http://127.0.0.1:${api.port}` })).toBe("open viv");
  });

  it("are refused without a token", async () => {
    expect(await open(["viv"], {})).toBe("401");
    expect(await open(["viv", "viv.bearer.wrong"], {})).toBe("401");
    expect((await tcp("GET /events", { authorization: undefined })).status).toBe(401);
  });

  it("are refused to a foreign origin, even with the token", async () => {
    expect(await open(["viv"], { authorization: `Bearer ${TOKEN}`, origin: "http://evil.example" })).toBe("403");
    expect((await tcp("GET /events", { origin: "http://evil.example" })).status).toBe(403);
    expect((await tcp("GET /sandboxes/one/ports/80/http/", { ...upgrade, origin: "http://evil.example" })).status).toBe(403);
  });

  it("are refused with a foreign Host", async () => {
    expect((await tcp("GET /sandboxes/one/exec", { ...upgrade, host: "evil.example" })).status).toBe(403);
  });
});

describe("ids in paths (AP-05)", () => {
  it.each([
    "..",
    ".",
    "%2e%2e",
    "%2E.",
    "..%2f..",
    "%00",
    "a%00",
    "%252e%252e",
    "%c3%a9",
    "A",
    "a_b",
    "-a",
    "%zz",
    "a%2fb",
    "__proto__",
    "a%0d%0ab",
    "a\\b",
  ])("are refused with 400 as %s", async (id) => {
    for (const line of [
      `GET /sandboxes/${id}/diff`,
      `POST /sandboxes/${id}/stop`,
      `GET /sandboxes/${id}/files/content?path=a`,
      `GET /sandboxes/${id}/ports/80/http/`,
    ]) {
      const answer = await unix(line);
      expect({ line, status: answer.status }).toEqual({ line, status: 400 });
      expect(codeOf(answer)).toBe("invalid_input");
    }
    expect(api.engine.calls).toEqual([]);
  });

  it("are refused with 400 as ten kilobytes", async () => {
    for (const line of [`GET /sandboxes/${"a".repeat(10_000)}`, `POST /sandboxes/${"a".repeat(10_000)}/stop`])
      expect((await unix(line)).status).toBe(400);
  });

  it("are refused with 400 as raw bytes that are not ASCII", async () => {
    expect((await unix("GET /sandboxes/\u00e9/diff")).status).toBe(400);
  });

  it("are let through in plain form", async () => {
    expect((await unix("POST /sandboxes/one/stop")).status).toBe(200);
  });

  it.each(["02280", "+2280", "2280.0", "0x50", "1e3", "0", "65536", "-1", "%32%32", "8%2030", ""])(
    "are refused as port %s",
    async (port) => {
      expect((await unix(`GET /sandboxes/one/ports/${port}/http/`)).status).toBe(400);
    },
  );

  it("are refused as path fields that hold a NUL byte", async () => {
    expect((await unix("GET /sandboxes/one/files/list?path=a%00b")).status).toBe(400);
    expect((await unix("GET /sandboxes/one/files/list?path=ab")).status).toBe(200);
  });
});

describe("fields that are not in the schema (AP-07, AP-08)", () => {
  const post = (body: string): Promise<RawAnswer> => unix("POST /sandboxes", json, body);

  it("are refused by name", async () => {
    for (const field of ["privileged", "runtime", "image", "mounts", "annotations", "run.oci.handler", "driver", "id", "range"]) {
      const answer = await post(JSON.stringify({ project: "/p", [field]: true }));
      expect(answer.status).toBe(400);
      expect(answer.body).toContain(field);
    }
    expect((await post('{"project":"/p","limits":{"cpus":1,"gpus":1}}')).body).toContain("limits.gpus");
    expect((await unix("GET /sandboxes?all=1")).status).toBe(400);
    expect((await unix("POST /sandboxes?privileged=1", json, '{"project":"/p"}')).status).toBe(400);
    expect((await unix("POST /sandboxes/one/stop", json, '{"sandbox":"two"}')).status).toBe(400);
    expect((await unix("GET /sandboxes?project=a&project=b")).status).toBe(400);
    expect(api.engine.calls).toEqual([]);
    expect((await post('{"project":"/p"}')).status).toBe(201);
  });

  it("have no effect on objects", async () => {
    for (const body of [
      '{"project":"/p","__proto__":{"polluted":1}}',
      '{"project":"/p","constructor":{"prototype":{"polluted":1}}}',
      '{"__proto__":{"project":"/p"}}',
    ])
      expect((await post(body)).status).toBe(400);
    await post('{"project":"/p","env":{"__proto__":"x","constructor":"y"},"labels":{"__proto__":"x"}}');
    expect((await unix("GET /sandboxes?__proto__=x")).status).toBe(400);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    const input = api.engine.calls[0]?.input as { env: object; labels: object } | undefined;
    for (const object of [input?.env, input?.labels]) expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
  });
});

describe("bodies", () => {
  it("that are too large are refused while they arrive", async () => {
    const large = `{"project":"/${"x".repeat(2 * 1024 ** 2)}"}`;
    expect((await unix("POST /sandboxes", json, large)).status).toBe(400);
    const chunked = `POST /sandboxes HTTP/1.1\r\nhost: viv\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n${`10000\r\n${"x".repeat(65_536)}\r\n`.repeat(20)}0\r\n\r\n`;
    expect((await rawRequest({ path: api.socketPath }, chunked)).status).toBe(400);
  });

  it("that are deep are refused at once", async () => {
    const started = workMs();
    for (const body of ["[".repeat(500_000), '{"a":'.repeat(200_000), `{"project":"/p","env":${'{"a":'.repeat(40)}1${"}".repeat(40)}}`])
      expect((await unix("POST /sandboxes", json, body)).status).toBe(400);
    expect(workMs() - started).toBeLessThan(2_000);
  });

  it("that are not a JSON object are refused with a sentence", async () => {
    for (const body of ["[]", "1", "null", '"x"', "{", "{'a':1}"]) {
      const answer = await unix("POST /sandboxes", json, body);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.body)).toMatchObject({
        error: { code: "invalid_input", message: expect.stringMatching(/\.$/), remedy: expect.any(String) },
      });
    }
  });

  it("name the field that is wrong", async () => {
    const answer = await unix("POST /sandboxes", json, '{"project":"/p","limits":{"cpus":"many"}}');
    expect(JSON.parse(answer.body)).toMatchObject({ error: { message: expect.stringContaining('"limits.cpus"') } });
  });

  it("of answers hold only what the contract names", async () => {
    const answer = await unix("POST /sandboxes", json, '{"project":"/p"}');
    expect(answer.status).toBe(201);
    expect(answer.body).not.toContain("s3cret");
  });
});

describe("connections", () => {
  it("that do not finish their headers do not hold up others", async () => {
    const silent = connect(api.socketPath);
    silent.write("GET /sandboxes HT");
    expect((await unix("GET /sandboxes")).status).toBe(200);
    silent.destroy();
  });

  it("of a hundred callers are served at once", async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => unix("GET /sandboxes")));
    expect(answers.every((answer) => answer.status === 200)).toBe(true);
  });

  it("that ask for what is not there get a sentence", async () => {
    const answer = await unix("GET /nothing");
    expect(answer.status).toBe(404);
    expect(codeOf(answer)).toBe("not_found");
    expect(api.defects).toEqual([]);
  });
});
