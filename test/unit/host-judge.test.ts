/** NET-1, NET-2: the policy has its say in the proxy, over the real store, queue of questions and config files. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Approvals } from "../../src/rules/approvals/approvals.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import { HostJudge } from "../../src/rules/effects/host-judge.ts";
import type { Allowed, Ruling } from "../../src/rules/network/rules.ts";
import { Session } from "../../src/rules/network/session.ts";
import type { Approval } from "../../src/base/schema/approval.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { NO_NETWORK } from "../../src/base/schema/network.ts";
import { NO_CHOICE, type Autonomy } from "../../src/base/schema/policy.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { aSandboxRow } from "../support/rows.ts";
import { eventually } from "../support/server.ts";

let place: string;
let project: string;
let store: Store;
let approvals: Approvals;
let judge: HostJudge;
let session: Session;
const PUBLIC: Allowed = { verdict: "allow", rule: "public", tcp: false, private: false };
const NAMED: Allowed = { ...PUBLIC, rule: "allow named.test" };

beforeEach(async () => {
  place = mkdtempSync(join(tmpdir(), "viv-judge-"));
  project = join(place, "project");
  mkdirSync(project);
  store = await openSqliteStore(join(place, "vivarium.db"));
  approvals = new Approvals(store, new Audit(store, join(place, "anchor"), () => undefined), join(place, "token"));
  make(60_000);
  await sandbox({});
});
afterEach(async () => {
  await store.close();
  rmSync(place, { recursive: true, force: true });
});

function make(holdMs: number): void {
  judge = new HostJudge({ store, approvals, holdMs });
}

/** A sandbox with this autonomy. */
async function sandbox(autonomy: Partial<Autonomy>): Promise<void> {
  const row = aSandboxRow({ project, autonomy: { ...NO_CHOICE, ...autonomy } });
  session = new Session(row.id, { ...NO_NETWORK, mode: "public" });
  await store.change((change) => change.sandboxes.put(row));
}

async function config(content: object, trusted = true): Promise<void> {
  const text = JSON.stringify(content);
  writeFileSync(join(project, "vivarium.json"), text);
  const hash = trusted ? createHash("sha256").update(text).digest("hex") : null;
  await store.change((change) => change.projects.put({ id: "project_1", path: project, trusted: hash }));
}

const ask = (host: string, ruling = PUBLIC, signal?: AbortSignal): Promise<Ruling | undefined> =>
  judge.judge(session, { host, port: 443, protocol: "connect" }, ruling, signal);
const verdict = async (host: string, ruling = PUBLIC): Promise<string> => {
  make(1);
  const found = await ask(host, ruling);
  return found === undefined ? "allow" : found.verdict === "deny" ? found.code : "asked";
};
const answer = (asked: Approval | undefined, given: "once" | "always" | "deny"): Promise<Approval> =>
  approvals.answer(asked?.id ?? "", given, readFileSync(join(place, "token"), "utf8").trim());
const questions = (count = 1): Promise<Approval[]> =>
  eventually(
    () => approvals.list(false),
    ({ length }) => length === count,
  );

describe("what the policy says of hosts in the proxy", () => {
  test("where no level was chosen, only rules that name hosts count", async () => {
    expect(await verdict("any.test")).toBe("allow");
    await config({ policy: { host: { "evil.test": "deny", "*.asked.test": "ask" } } });
    expect(await verdict("any.test")).toBe("allow");
    expect(await verdict("evil.test")).toBe("policy");
    expect(await verdict("a.asked.test")).toBe("host_held");
  });

  test.each<[string, Partial<Autonomy>, Record<string, string>]>([
    ["level 1 asks about all hosts but those of packages", { level: 1 }, { "any.test": "host_held", "registry.npmjs.org": "allow" }],
    ["level 2 does, too", { level: 2 }, { "any.test": "host_held", "pypi.org": "allow" }],
    ["level 3 calls the public web", { level: 3 }, { "any.test": "allow" }],
    ["yolo 1 asks about every host", { yolo: 1 }, { "any.test": "host_held", "registry.npmjs.org": "host_held" }],
    ["yolo 2 calls the public web", { yolo: 2 }, { "any.test": "allow" }],
    ["yolo 4 calls the public web", { yolo: 4 }, { "any.test": "allow" }],
  ])("%s", async (_, autonomy, expected) => {
    await sandbox(autonomy);
    for (const [host, said] of Object.entries(expected)) expect(await verdict(host), host).toBe(said);
  });

  test.each<Partial<Autonomy>>([{}, { level: 1 }, { level: 2 }, { level: 3 }, { yolo: 1 }, { yolo: 2 }, { yolo: 3 }, { yolo: 4 }])(
    "NET-2: production is denied with %j, trusted or not, however it was named",
    async (autonomy) => {
      await sandbox(autonomy);
      for (const trusted of [true, false]) {
        await config({ network: { production: ["*.prod.test"] }, policy: { host: { "a.prod.test": "allow" } } }, trusted);
        expect(await verdict("a.prod.test")).toBe("policy");
        expect(await verdict("a.prod.test", NAMED)).toBe("policy");
      }
    },
  );

  test("a host that the rules of the network name needs no second word, unless a rule of the policy names it", async () => {
    await sandbox({ level: 1 });
    expect(await verdict("named.test", NAMED)).toBe("allow");
    expect(await verdict("db.internal", { ...NAMED, private: true })).toBe("allow");
    await config({ policy: { host: { "named.test": "deny" } } });
    expect(await verdict("named.test", NAMED)).toBe("policy");
  });

  test("hosts that are not on the public web are left to the proxy, which explains them", async () => {
    await sandbox({ level: 3 });
    for (const host of ["localhost", "127.0.0.1", "10.0.0.1", "printer.local"]) expect(await verdict(host), host).toBe("allow");
  });

  test("rules that no person trusted make it stricter and never milder", async () => {
    await sandbox({ level: 1 });
    await config({ policy: { host: { "any.test": "allow", "registry.npmjs.org": "deny" } } }, false);
    expect(await verdict("any.test")).toBe("host_held");
    expect(await verdict("registry.npmjs.org")).toBe("policy");
  });

  test("a change of the config counts for the next request; while it can't be read nothing new is let out", async () => {
    await config({ policy: { host: { "evil.test": "deny" } } });
    expect(await verdict("evil.test")).toBe("policy");
    make(1);
    expect(await ask("evil.test")).toMatchObject({ code: "policy" });
    writeFileSync(join(project, "vivarium.json"), "{ broken");
    for (const host of ["evil.test", "fine.test"])
      expect(await ask(host)).toMatchObject({ code: "policy", reason: expect.stringContaining("vivarium.json") });
    expect(await judge.lets(session, "fine.test", PUBLIC)).toBe(false);
    // What is open stays until it can be read.
    expect((await judge.standing(session))("fine.test", 443, PUBLIC)).toBe(true);
    await config({ policy: { host: { "fine.test": "deny" } } });
    expect(await ask("evil.test")).toBeUndefined();
    expect(await judge.lets(session, "evil.test", PUBLIC)).toBe(true);
    expect(await judge.lets(session, "fine.test", PUBLIC)).toBe(false);
    expect((await judge.standing(session))("fine.test", 443, PUBLIC)).toBe(false);
  });
});

describe("a host that is asked about", () => {
  beforeEach(() => sandbox({ level: 1 }));

  test("goes through once a person says yes, once for each yes", async () => {
    const one = ask("any.test");
    const two = ask("any.test");
    const [asked] = await questions();
    expect(asked).toMatchObject({ kind: "host", target: "any.test:443", always: "host: any.test" });
    await answer(asked, "once");
    const [first, second] = await Promise.all([
      Promise.race([one, two]),
      questions().then(async ([next]) => {
        expect(next?.id).not.toBe(asked?.id);
        await answer(next, "deny");
        return Promise.all([one, two]);
      }),
    ]);
    expect(first).toMatchObject({ verdict: "allow", approval: asked?.id });
    expect(second.filter((found) => found?.verdict === "deny")).toMatchObject([{ code: "policy" }]);
  });

  test("is refused with the question's id when no person answers in time, and goes through later", async () => {
    make(20);
    const refused = await ask("any.test");
    const [asked] = await questions();
    expect(refused).toMatchObject({ code: "host_held", reason: expect.stringContaining(asked?.id ?? "nothing") });
    await answer(asked, "once");
    expect(await ask("any.test")).toMatchObject({ verdict: "allow", approval: asked?.id });
    expect(await ask("any.test")).toMatchObject({ code: "host_held" });
    // Another port is another place.
    expect(await judge.judge(session, { host: "any.test", port: 80, protocol: "http" }, PUBLIC)).toMatchObject({ code: "host_held" });
  });

  test("goes through without a further question after `always`, and no other host does", async () => {
    const waiting = ask("any.test");
    await answer((await questions())[0], "always");
    expect(await waiting).toMatchObject({ verdict: "allow" });
    make(1);
    expect(await ask("any.test")).toBeUndefined();
    expect(await ask("sub.any.test")).toMatchObject({ code: "host_held" });
  });

  test("a yes that comes when the client has gone is kept for the next one", async () => {
    const gone = new AbortController();
    const waiting = ask("any.test", PUBLIC, gone.signal);
    const [asked] = await questions();
    gone.abort();
    expect(await waiting).toMatchObject({ verdict: "deny" });
    await answer(asked, "once");
    expect(await ask("any.test")).toMatchObject({ verdict: "allow" });
  });

  test("a no holds for a while without asking again", async () => {
    const waiting = ask("any.test");
    await answer((await questions())[0], "deny");
    expect(await waiting).toMatchObject({ code: "policy" });
    expect(await ask("any.test")).toMatchObject({ code: "policy" });
    expect(await approvals.list(false)).toEqual([]);
  });

  test("a flood of hosts leaves room for the questions of others", async () => {
    make(1);
    for (let count = 0; count < LIMITS.waitingQuestions + 5; count += 1)
      expect(await ask(`h${count}.test`)).toMatchObject({ code: "host_held" });
    expect(await approvals.list(false)).toHaveLength(LIMITS.waitingQuestions);
  });

  test("nothing goes out while nothing is known of the sandbox", async () => {
    session = new Session("sandbox_unknown", session.rules);
    expect(await ask("any.test")).toMatchObject({ code: "policy" });
  });

  test("what is open stays while a yes or a rule stands for it", async () => {
    const stands = async (host: string): Promise<boolean> => (await judge.standing(session))(host, 443, PUBLIC);
    expect(await stands("any.test")).toBe(false);
    expect(await stands("registry.npmjs.org")).toBe(true);
    const waiting = ask("any.test");
    await answer((await questions())[0], "once");
    await waiting;
    expect(await stands("any.test")).toBe(true);
    await config({ policy: { host: { "any.test": "deny" } } });
    expect(await stands("any.test")).toBe(false);
  });
});
