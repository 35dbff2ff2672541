/** How requests find their operation, byte for byte as callers write them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startApi, type ApiServer } from "../support/api-server.ts";
import { rawRequest, request } from "../support/raw-http.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const json = { host: "viv", "content-type": "application/json" };
const status = async (line: string): Promise<number> => (await rawRequest({ path: api.socketPath }, request(line, { host: "viv" }))).status;

describe("requests to operations", () => {
  test("find their route also where its name is written in percent signs", async () => {
    expect(await status("GET /sandboxes")).toBe(200);
    expect(await status("GET /%73andboxes")).toBe(200);
  });

  test("have a value for each field of the path", async () => {
    expect(await status("GET /sandboxes/")).toBe(404);
    expect(await status("GET /sandboxes//commands")).toBe(404);
    expect(await status("PUT /sandboxes")).toBe(404);
  });

  test("that are refused by their body leave the connection to the next one", async () => {
    const open = { ...json, connection: "keep-alive" };
    const wrong = request("POST /sandboxes", open, '{"project":1}');
    const unread = request("POST /sandboxes", { ...open, "content-type": "text/plain" }, "x".repeat(100_000));
    const { head, body } = await rawRequest({ path: api.socketPath }, wrong + unread + request("GET /sandboxes", { host: "viv" }));
    const answers = `${head}\r\n\r\n${body}`.match(/http\/1\.1 \d+/gi);
    expect(answers?.map((line) => line.slice(-3))).toEqual(["400", "400", "200"]);
  });
});
