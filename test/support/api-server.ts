/** The API over a scripted engine, on a Unix socket and on loopback. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { loopbackDoor, type Door } from "../../src/interfaces/api/door.ts";
import { Pages } from "../../src/interfaces/api/pages.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import { Previews } from "../../src/rules/sessions/previews.ts";
import { Sessions } from "../../src/rules/sessions/sessions.ts";
import { listen, type HttpListener } from "../../src/interfaces/api/listen.ts";
import { Client } from "../../src/interfaces/client/client.ts";
import type { VivError } from "../../src/base/schema/errors.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { ScriptedEngine } from "./scripted-engine.ts";

export const TOKEN = "a-token-of-this-test";
/** How long a program inside may be silent at a preview. */
export const PREVIEW_ANSWER_MS = 1_500;

export interface ApiServer {
  readonly engine: ScriptedEngine;
  readonly store: Store;
  readonly listening: HttpListener;
  readonly socketPath: string;
  readonly port: number;
  readonly client: Client;
  readonly sessions: Sessions;
  readonly previews: Previews;
  /** How far the clock of sessions is ahead. */
  readonly clock: { aheadMs: number };
  /** Defects the server heard of. */
  readonly defects: VivError[];
  close(): Promise<void>;
}

/** A dashboard of one page and one script, as the build leaves it. */
function pages(folder: string): string {
  const web = join(folder, "web");
  mkdirSync(join(web, "assets"), { recursive: true });
  for (const [name, text] of [
    ["index.html", "<!doctype html><title>Vivarium</title>"],
    ["assets/main-abc.js", "export {};"],
  ] as const) {
    writeFileSync(join(web, `${name}.gz`), gzipSync(text));
    writeFileSync(join(web, `${name}.br`), brotliCompressSync(text));
  }
  return web;
}

export async function startApi(options: { readonly door?: Door } = {}): Promise<ApiServer> {
  const clock = { aheadMs: 0 };
  const folder = mkdtempSync(join(tmpdir(), "viv-api-"));
  const socketPath = join(folder, "viv.sock");
  const store = await openSqliteStore(join(folder, "vivarium.db"));
  const engine = new ScriptedEngine(store);
  const audit = new Audit(store, join(folder, "anchor"), () => undefined);
  const sessions = await Sessions.open(store, audit, () => Date.now() + clock.aheadMs);
  const previews = await Previews.open(store, sessions, () => Date.now() + clock.aheadMs);
  const defects: VivError[] = [];
  const listening = await listen(engine, {
    version: "0.0.0",
    socketPath,
    tcp: { door: options.door ?? loopbackDoor(0), token: TOKEN },
    dashboard: { pages: new Pages(pages(folder)), sessions, previews },
    previewAnswerMs: PREVIEW_ANSWER_MS,
    onError: (error) => defects.push(error),
  });
  const client = new Client({ socket: socketPath });
  const close = async (): Promise<void> => {
    client.close();
    await listening.close();
    await audit.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { engine, store, listening, socketPath, port: listening.opened?.port ?? 0, client, sessions, previews, clock, defects, close };
}
