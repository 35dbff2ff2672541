/** A client of one version against a server of another, whose routes differ. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { NodeTransport } from "../../src/interfaces/client/node-transport.ts";
import { startApi, type ApiServer } from "../support/api-server.ts";

let api: ApiServer;
let transport: NodeTransport;

beforeEach(async () => {
  api = await startApi();
  transport = new NodeTransport({ socket: api.socketPath });
});
afterEach(async () => {
  transport.close();
  await api.close();
});

test("a route that the running server does not have is told as its other version, with what to do", async () => {
  const told = {
    code: "unsupported",
    message: "The running server is of another version of viv, which can't do this.",
    remedy: expect.stringContaining("`viv down`") as string,
  };
  await expect(transport.json({ method: "GET", path: "/a-later-route" })).rejects.toMatchObject(told);
  await expect(transport.json({ method: "POST", path: "/sandboxes/one/later", body: "{}" })).rejects.toMatchObject(told);
  await expect(transport.webSocket("/sandboxes/one/later")).rejects.toMatchObject(told);
  // As a control, a route that it has.
  expect(await api.client.call("listSandboxes", {})).toMatchObject({ sandboxes: expect.any(Array) as unknown[] });
});
