/** NET-6: a request without an answer in time is not sent, and can be asked for again. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Approvals } from "../../src/rules/approvals/approvals.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import { Ledger } from "../../src/rules/effects/ledger.ts";
import { Session } from "../../src/rules/network/session.ts";
import { NO_NETWORK } from "../../src/base/schema/network.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { aSandboxRow } from "../support/rows.ts";
import { eventually } from "../support/server.ts";

let place: string;
let store: Store;
let ledger: Ledger;
let approvals: Approvals;
const log = { info: () => undefined, warn: () => undefined };
const row = aSandboxRow({});
const session = new Session(row.id, { ...NO_NETWORK, mode: "public", effects: "hold" });
const request = { method: "DELETE", url: "http://shop.test/orders/1", body: Buffer.from("") };
const never = new AbortController().signal;

beforeEach(async () => {
  place = mkdtempSync(join(tmpdir(), "viv-effects-"));
  store = await openSqliteStore(join(place, "vivarium.db"));
  await store.change((change) => change.sandboxes.put(row));
  const audit = new Audit(store, join(place, "anchor"), () => undefined);
  approvals = new Approvals(store, audit, join(place, "token"));
  ledger = new Ledger({ store, log, approvals, holdMs: 30 });
});
afterEach(async () => {
  await store.close();
  rmSync(place, { recursive: true, force: true });
});

describe("a request that is held", () => {
  test("NET-6: is refused with the id of the question when no person answers in time", async () => {
    const refused = await ledger.begin(session, request, never);
    const [asked] = await approvals.list(false);
    expect(refused).toMatchObject({ code: "effect_held", reason: expect.stringContaining(asked?.id ?? "nothing") });
    expect(await store.effects.list({}, { limit: 10 })).toMatchObject([{ state: "held", approval: asked?.id, method: "DELETE" }]);
  });

  test("NET-6: of two that are the same and wait at once, one yes sends one", async () => {
    const patient = new Ledger({ store, log, approvals, holdMs: 5_000 });
    const both = [patient.begin(session, request, never), patient.begin(session, request, never)];
    const [asked, ...more] = await eventually(
      () => approvals.list(false),
      ({ length }) => length > 0,
    );
    expect(more).toEqual([]);
    await eventually(
      () => store.effects.list({}, { limit: 10 }),
      ({ length }) => length === 2,
    );
    await approvals.answer(asked?.id ?? "", "once", readFileSync(join(place, "token"), "utf8").trim());
    const results = await Promise.all(both);
    expect(results.filter((result) => typeof result === "function")).toHaveLength(1);
    expect(results.filter((result) => typeof result !== "function")).toMatchObject([{ code: "effect_held" }]);
    expect((await store.effects.list({}, { limit: 10 })).map(({ state }) => state).toSorted()).toEqual(["held", "sent"]);
    expect(await ledger.begin(session, request, never)).toMatchObject({ code: "effect_held" });
  });

  test("NET-6: is not sent, and no question is asked, once the sandbox is gone", async () => {
    await store.change((change) => change.sandboxes.remove(row.id));
    expect(await ledger.begin(session, request, never)).toMatchObject({ verdict: "deny", code: "effect_held" });
    expect(await approvals.list(false)).toEqual([]);
  });

  test("NET-6: is not sent when it can't be recorded", async () => {
    await store.close();
    const open = new Session(row.id, { ...NO_NETWORK, mode: "public" });
    expect(await ledger.begin(open, request, never)).toMatchObject({ verdict: "deny", code: "not_recorded" });
    store = await openSqliteStore(join(place, "vivarium.db"));
  });
});
