/** The client for browsers, bundled and run with nothing but what a page has. */
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as Sdk from "../../src/interfaces/sdk/browser.ts";
import { startApi, TOKEN, type ApiServer } from "../support/api-server.ts";
import { CHECKOUT } from "../support/compiled.ts";

/** What a page has of its own, as far as the client may use it. */
const PAGE = {
  fetch,
  WebSocket,
  Blob,
  Response,
  ReadableStream,
  TextEncoder,
  TextDecoder,
  URL,
  AbortController,
  AbortSignal,
  setTimeout,
  clearTimeout,
};

let api: ApiServer;
let code: string;
let asked: readonly string[];

beforeAll(async () => {
  api = await startApi();
  const build = await rolldown({ input: join(CHECKOUT, "src/interfaces/sdk/browser.ts"), platform: "browser", logLevel: "silent" });
  const { output } = await build.generate({ format: "iife", name: "sdk", exports: "named" });
  await build.close();
  expect(output).toHaveLength(1);
  ({ code, imports: asked } = output[0]);
});
afterAll(async () => api.close());

test("API-1: the client for browsers imports no module of Node, nor anything else", () => {
  expect(asked).toEqual([]);
  expect(code).not.toMatch(/["']node:|\brequire\(|\bprocess\.|\bBuffer\./);
});

test("API-1: the client for browsers works where there is nothing but a page's own interfaces", async () => {
  const page = createContext({ ...PAGE });
  runInContext(code, page);
  const { Vivarium, VivariumError } = (page as { sdk: typeof Sdk }).sdk;
  const url = `http://127.0.0.1:${api.port}`;
  const viv = new Vivarium({ url, token: TOKEN });
  expect(Array.isArray(await viv.list())).toBe(true);
  const refused: unknown = await new Vivarium({ url, token: "wrong" }).list().catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(VivariumError);
  expect(refused).toMatchObject({ code: "unauthorized", status: 401 });
});
