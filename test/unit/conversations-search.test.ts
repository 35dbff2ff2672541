import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import type { ConversationHit } from "../../src/base/schema/conversation.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import type { Conversations } from "../../src/work/conversations/conversations.ts";
import { similarity } from "../../src/work/conversations/embedder.ts";
import { LocalEmbedder } from "../../src/work/conversations/local-embedder.ts";
import { stem, wordsOf } from "../../src/work/conversations/words.ts";
import { BY_MEANING, BY_WORDS, TEXTS, type TextName } from "../corpus/conversation-search.ts";
import { conversationsOn } from "../support/conversations.ts";

let folder: string;
let store: Store;
let conversations: Conversations;
const run = newId("run");
const names = Object.keys(TEXTS) as TextName[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "viv-search-"));
  store = await openSqliteStore(join(folder, "vivarium.db"));
  conversations = conversationsOn(store);
  const said = Object.values(TEXTS).map((text) => ({ role: "agent", kind: "text", text }) as const);
  await store.change((change) => conversations.append(change, { run, project: "/p" }, said));
});
afterAll(async () => {
  await conversations.close();
  await store.close();
  rmSync(folder, { recursive: true });
});

const found = (hits: readonly ConversationHit[]): (TextName | undefined)[] => hits.map(({ sequence }) => names[sequence - 1]);

describe("AGT-6: a search of conversations", () => {
  it.each(BY_WORDS)("finds first by words: %s", async (query, expected) => {
    expect(found(await conversations.search(query, { run }))[0]).toBe(expected);
  });

  it("finds by meaning what other words say, nearly always among the first three", async () => {
    const places = await Promise.all(
      BY_MEANING.map(async ([query, expected]) => ({ query, place: found(await conversations.search(query, { run })).indexOf(expected) })),
    );
    const missed = places.filter(({ place }) => place < 0 || place > 2).map(({ query, place }) => `${query}: ${place}`);
    expect(missed.length, missed.join("\n")).toBeLessThanOrEqual(2);
  });

  it("says how each was found, with the part that fits", async () => {
    const [hit] = await conversations.search("failing checks", {});
    expect(hit).toMatchObject({ run, project: "/p", sequence: 1, role: "agent", kind: "text", by: ["words", "meaning"] });
    expect(hit?.excerpt).toBe(TEXTS.ciRed);
    const other = newId("run");
    const text = `${"noise ".repeat(5_000)}the walrus sank${" noise".repeat(5_000)}`;
    await store.change((change) => conversations.append(change, { run: other, project: "/q" }, [{ role: "tool", kind: "text", text }]));
    expect((await conversations.search("sinking walrus", { project: "/q" }))[0]?.excerpt).toMatch(/^….*the walrus sank.*…$/);
  });

  it("looks only where it is asked to", async () => {
    expect(await conversations.search("failing checks", { run: newId("run") })).toEqual([]);
    expect(await conversations.search("failing checks", { project: "/elsewhere" })).toEqual([]);
    expect(await conversations.search("failing checks", { project: "/p" }, 1)).toHaveLength(1);
  });

  it.each([
    '"',
    "*",
    "a AND",
    "NEAR(a b",
    "(",
    "col:x",
    "^",
    "-",
    "\0",
    "\ud800",
    "😀",
    "' ; drop table conversations",
    "{",
    "x".repeat(1_000),
  ])("takes any text for words, never for a language: %j", async (query) => {
    await expect(conversations.search(query, {})).resolves.toBeInstanceOf(Array);
    expect(found(await conversations.search(`${query} argon2`, { run }))).toContain("passwordHash");
  });

  it("answers nothing to what has nothing to do with anything", async () => {
    expect(await conversations.search("xylophone quokka", { run })).toEqual([]);
  });
});

describe("the local embedder", () => {
  const embedder = new LocalEmbedder();
  const alike = async (one: string, other: string): Promise<number> => {
    const [a, b] = await embedder.embed([one, other]);
    return similarity(a ?? new Int8Array(), b ?? new Int8Array());
  };

  test("gives equal texts equal vectors of unit length, and like texts like ones", async () => {
    expect(await alike("the test fails", "the test fails")).toBeCloseTo(1, 1);
    expect(await alike("test fails", "failing checks")).toBeGreaterThan(0.4);
    expect(await alike("test fails", "the button is grey")).toBeLessThan(0.2);
    expect(await alike("", "anything")).toBe(0);
  });

  test("takes a misspelled word for nearly the same", async () => {
    expect(await alike("authentication", "authentcation")).toBeGreaterThan(await alike("authentication", "pagination"));
  });
});

describe("words", () => {
  test("are folded to what their forms have in common", () => {
    for (const forms of [
      ["fail", "fails", "failed", "failing", "failure", "failures"],
      ["cache", "caches", "cached", "caching"],
      ["authenticate", "authentication", "authenticated"],
      ["install", "installs", "installed", "installing"],
      ["run", "running", "runs", "runner"],
      ["query", "queries"],
    ])
      expect(new Set(forms.map(stem)).size, forms.map((form) => `${form}: ${stem(form)}`).join(", ")).toBe(1);
  });

  test("are found in names of programs and in every script", () => {
    expect(wordsOf("parseConfig src/foo_bar.ts Café Straße 日本語").join(" ")).toBe("parse config src foo bar ts cafe straße 日本語");
  });
});
