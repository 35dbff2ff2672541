/** RS-12 of the threat list: small requests that want to cost much. Each is refused while the server goes on answering others. */
import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { z } from "zod";
import { CONTRACTS } from "../../src/base/schema/contracts.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { startApi, type ApiServer } from "../support/api-server.ts";
import { rawRequest, request, type RawAnswer } from "../support/raw-http.ts";

/** As many units as a body may have bytes for. */
function filled(head: string, unit: string, tail: string): string {
  return head + unit.repeat(Math.floor((LIMITS.maxBodyBytes - head.length - tail.length) / unit.length)) + tail;
}

const members = (count: number, member: (index: number) => string): string =>
  Array.from({ length: count }, (_, at) => member(at)).join(",");

const CROWD = filled('{"names":[1', ",1", "]}");
const DEEP = `${"[".repeat(500_000)}${"]".repeat(500_000)}`;
const PATTERN = filled('{"by":"1', "1", ' x"}');

const BODIES: readonly (readonly [what: string, line: string, body: string])[] = [
  ["lists in lists", "POST /sandboxes", DEEP],
  ["objects in objects", "POST /sandboxes", filled("", '{"a":', "")],
  ["a list of half a million wrong values", "POST /sandboxes/one/fork", CROWD],
  ["a list of a quarter million good names", "POST /sandboxes/one/fork", filled('{"names":["a"', ',"a"', "]}")],
  ["ninety thousand wrong variables", "POST /sandboxes", `{"project":"/p","env":{${members(90_000, (at) => `"${at}":1`)}}}`],
  ["eighty thousand good variables", "POST /sandboxes", `{"project":"/p","env":{${members(80_000, (at) => `"${at}":""`)}}}`],
  ["thousands of labels", "POST /sandboxes", `{"project":"/p","labels":{${members(5_000, (at) => `"${at}":"${"x".repeat(100)}"`)}}}`],
  ["ninety thousand unknown fields", "POST /sandboxes", `{${members(90_000, (at) => `"x${at}":1`)}}`],
  ["a path of a megabyte", "POST /sandboxes", filled('{"project":"/', "x", '"}')],
  ["a field's name of a megabyte", "POST /sandboxes", filled('{"', "x", '":1}')],
  ["a label's name of a megabyte", "POST /sandboxes", filled('{"project":"/p","labels":{"', "x", '":"a"}}')],
  ["a number of a megabyte", "POST /sandboxes", filled('{"project":1', "0", "}")],
  ["a pattern's worst text, of digits", "POST /sandboxes/one/extend", PATTERN],
  ["a pattern's worst text, of spaces", "POST /sandboxes/one/extend", filled('{"by":"1', " ", 'x"}')],
  ["a pattern's worst text, of letters", `POST /sandboxes/one/commands/cmd${"0".repeat(26)}/kill`, filled('{"signal":"', "A", '-"}')],
  ["a body that never ends", "POST /sandboxes", `{"project":"/${"x".repeat(8 * 1024 ** 2)}"}`],
];

const TARGETS: readonly (readonly [what: string, target: string])[] = [
  ["a glob of ten thousand stars", `/sandboxes/one/files/list?path=${"*".repeat(10_000)}`],
  ["braces that stand for 2^2000 names", `/sandboxes/one/files/list?path=${"{a,b}".repeat(2_000)}`],
  ["one field thousands of times", `/sandboxes?${"a&".repeat(7_000)}`],
  ["thousands of fields", `/sandboxes?${Array.from({ length: 2_500 }, (_, at) => `k${at}`).join("&")}`],
  ["a field's name of kilobytes", `/sandboxes?${"k".repeat(15_000)}&${"k".repeat(10)}`],
  ["thousands of folders", `/${"a/".repeat(7_000)}`],
  ["a megabyte", `/sandboxes?project=${"x".repeat(1024 ** 2)}`],
];

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const json = { host: "viv", "content-type": "application/json" };
const send = (text: string | Buffer): Promise<RawAnswer> => rawRequest({ path: api.socketPath }, text);

/** Asks a small thing again and again while `work` goes on; the longest it took, in milliseconds. */
async function slowestAnswerDuring(work: () => Promise<unknown>): Promise<number> {
  const over = new AbortController();
  const asking = (async () => {
    let slowest = 0;
    while (!over.signal.aborted) {
      const began = performance.now();
      await api.client.call("listSandboxes", {});
      slowest = Math.max(slowest, performance.now() - began);
    }
    return slowest;
  })();
  await work();
  over.abort();
  return asking;
}

function costOf(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}

describe("a bomb sent to the API", () => {
  test.each(BODIES)("RS-12: as %s in a body is refused in a short sentence, before anything is done", async (_, line, body) => {
    api.engine.calls.length = 0;
    const answer = await send(request(line, json, body));
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: "invalid_input", message: expect.stringMatching(/\.$/) } });
    expect(answer.body.length).toBeLessThan(1_000);
    expect(api.engine.calls).toEqual([]);
  });

  test.each(TARGETS)("RS-12: as %s in an address is refused", async (_, target) => {
    api.engine.calls.length = 0;
    const answer = await send(request(`GET ${target}`, { host: "viv" }));
    expect([400, 404, 431]).toContain(answer.status);
    expect(answer.body.length).toBeLessThan(1_000);
    expect(api.engine.calls).toEqual([]);
  });

  test("RS-12: as a compressed body is not unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(200 * 1024 ** 2, " "));
    expect(bomb.length).toBeLessThan(LIMITS.maxBodyBytes);
    const head = `POST /sandboxes HTTP/1.1\r\nhost: viv\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\nconnection: close\r\n\r\n`;
    const answer = await send(Buffer.concat([Buffer.from(head), bomb]));
    expect(answer.status).toBe(400);
    expect(answer.body).toContain("not JSON");
  });

  test.each([
    ["deep", DEEP.slice(0, 400_000), "nested deeper"],
    ["crowded", CROWD, "more than 20000 values"],
  ])("RS-12: as a %s first message of a WebSocket is refused", async (_, message, why) => {
    const socket = new WebSocket("ws+unix:" + api.socketPath + ":/sandboxes/one/exec", ["viv"], { perMessageDeflate: true });
    await once(socket, "open");
    expect(socket.extensions, "compressed messages are not taken").toBe("");
    socket.send(message);
    const [answer] = (await once(socket, "message")) as [Buffer];
    expect(JSON.parse(answer.toString())).toMatchObject({
      type: "error",
      error: { code: "invalid_input", message: expect.stringContaining(why) },
    });
    await once(socket, "close");
  });

  test("RS-12: as a WebSocket message over the bound ends the connection", async () => {
    const socket = new WebSocket("ws+unix:" + api.socketPath + ":/sandboxes/one/exec", ["viv"]);
    await once(socket, "open");
    socket.on("error", () => undefined);
    socket.send("x".repeat(LIMITS.maxBodyBytes + 1));
    const [code] = (await once(socket, "close")) as [number];
    expect([1006, 1009]).toContain(code);
  });

  test("RS-12: does not keep others waiting, while a server that looked at it all would stand still", async () => {
    const texts = BODIES.map(([, line, body]) => request(line, json, body));
    const protectedMs = await slowestAnswerDuring(async () => {
      for (const text of texts) await send(text);
    });
    // The same document, checked value by value by a schema that bounds nothing: all callers wait for that long.
    const unbounded = z.object({ names: z.array(z.string()) });
    const crowdMs = costOf(() => expect(unbounded.safeParse(JSON.parse(CROWD)).success).toBe(false));
    expect(protectedMs).toBeLessThan(crowdMs / 2);
  });

  test("RS-12: of depth breaks who walks it, and of text breaks a pattern that goes back and forth", () => {
    expect(() => JSON.stringify(JSON.parse(DEEP))).toThrow(RangeError);
    const worst = `${"1".repeat(26)}x`;
    const careless = costOf(() => expect(/^(\d+)+$/.test(worst)).toBe(false));
    const careful = costOf(() => expect(CONTRACTS.extendSandbox.input.safeParse({ sandbox: "one", by: worst }).success).toBe(false));
    expect(careful).toBeLessThan(careless);
  });
});
