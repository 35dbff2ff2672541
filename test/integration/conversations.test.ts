import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newId } from "../../src/base/schema/ids.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import { conversationsOn } from "../support/conversations.ts";

const support = (name: string): string => join(import.meta.dirname, "..", "support", name);
/** As the server is started. */
const NODE = [process.execPath, "--max-semi-space-size=2"] as const;
const run = newId("run");

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "viv-conversations-"));
  path = join(folder, "vivarium.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("AGT-6: a conversation of a million tokens", () => {
  it("is viewed and searched in bounded memory", { timeout: 120_000 }, () => {
    const [node, flag] = NODE;
    execFileSync(node, [support("conversation-writer.ts"), path, run, "1000000"], { maxBuffer: 64 * 1024 ** 2 });
    const said = execFileSync(node, [flag, support("conversation-reader.ts"), path, run], { encoding: "utf8" });
    const { tokens, taken, grownBytes } = JSON.parse(said) as { tokens: number; taken: number; grownBytes: number };
    expect(tokens).toBeGreaterThan(1_000_000);
    expect(taken).toBeGreaterThan(15_000);
    expect(taken).toBeLessThanOrEqual(20_000);
    expect(grownBytes).toBeLessThan(100 * 1024 ** 2);
  });
});

describe("AGT-6: a server that is killed while it keeps a conversation", () => {
  it.each([3, 40, 150])("has all that was acknowledged, nothing twice, and nothing of a change by half (after %i)", async (changes) => {
    const last = await killedAfter(changes);
    const store = await openSqliteStore(path);
    const conversations = conversationsOn(store);
    const { records, tokens } = await conversations.sums(run);
    expect(records).toBeGreaterThanOrEqual(last);
    const kept = await store.conversations.list({ run, limit: 1_000_000 });
    expect(kept.map(({ sequence }) => sequence)).toEqual(Array.from({ length: records }, (_, index) => index + 1));
    expect(kept.reduce((sum, record) => sum + record.tokens, 0)).toBe(tokens);
    const events = await store.events.list({ after: 0, limit: 1_000_000 });
    expect(events.at(-1)?.data).toEqual({ sequence: records });
    expect(new Set(events.map(({ data }) => data["sequence"])).size).toBe(events.length);
    await expect(conversations.search("parser fails", { run })).resolves.not.toEqual([]);
    expect((await store.conversations.search.vectors("local-1", {}, 0, 1_000_000)).length).toBe(records);
    await conversations.close();
    await store.close();
  });
});

/** The last number that the writer said before it was killed. */
async function killedAfter(changes: number): Promise<number> {
  const child = spawn(NODE[0], [support("conversation-writer.ts"), path, run, "100000000"], { stdio: ["ignore", "pipe", "inherit"] });
  let last = 0;
  let count = 0;
  for await (const line of createInterface(child.stdout)) {
    last = Number(line);
    if ((count += 1) === changes) child.kill("SIGKILL");
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, "close");
  expect(child.signalCode).toBe("SIGKILL");
  return last;
}
