/** What the resolver inside is told of names: no query leaves for one that may not be dialled. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { askServers } from "../../src/rules/network/resolver.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { TestResolver } from "../support/origins.ts";
import { ProxyLab } from "../support/proxy-lab.ts";

describe("a name that is asked for inside", () => {
  let lab: ProxyLab;
  const before = { ...LIMITS };
  const ask = (name: string): Promise<string> => lab.say(`\x03${name}\n`);
  const failing = (code: string) => () => {
    throw Object.assign(new Error(code), { code });
  };

  beforeEach(() => {
    lab = new ProxyLab();
    lab.names.set("there.example", ["93.184.215.14"]);
  });
  afterEach(() => {
    Object.assign(LIMITS, before);
    lab.close();
  });

  test("exists where it exists outside, and is recorded before it is asked for", async () => {
    await lab.set({ mode: "public" });
    lab.names.set("missing.example", failing("ENOTFOUND"));
    lab.names.set("unsure.example", failing("EAI_AGAIN"));
    expect(await ask("there.example")).toBe("+");
    expect(await ask("missing.example")).toBe("-");
    expect(await ask("empty.example")).toBe("-");
    expect(await ask("unsure.example")).toBe("?");
    expect(lab.records.map(({ host, protocol, verdict }) => `${verdict} ${protocol} ${host}`)).toEqual(
      ["there", "missing", "empty", "unsure"].map((name) => `allow dns ${name}.example`),
    );
    lab.failing = true;
    lab.names.set("unrecorded.example", ["93.184.215.14"]);
    expect(await ask("unrecorded.example")).toBe("?");
    expect(lab.asked).not.toContain("unrecorded.example");
  });

  test("exists nowhere if only a machine or a network could have it, unless a rule names it", async () => {
    const nowhere = ["nosuch.invalid", "some.test", "printer.local", "app.localhost", "db", "x.onion", "1.0.0.10.in-addr.arpa", "1.2.3.4"];
    for (const mode of ["public", "allow-list"] as const) {
      await lab.set({ mode });
      for (const name of nowhere) expect(await ask(name), `${name} in ${mode}`).toBe("-");
    }
    expect([lab.asked, lab.records]).toEqual([[], []]);
    lab.names.set("db", ["10.0.0.5"]);
    lab.names.set("printer.local", ["10.0.0.6"]);
    lab.opened.push({ host: "db", ports: [5432], tcp: true });
    await lab.set({ allow: [{ host: "*.local", tcp: false }], production: ["prod.test"] });
    for (const name of ["db", "printer.local", "prod.test"]) expect(await ask(name), name).toBe("+");
    expect(lab.asked).toEqual(["db", "printer.local"]);
  });

  test("NW-06, NW-07: causes no query if rules, limits or the policy keep it from being dialled", async () => {
    await lab.set({ allow: [{ host: "*.wide.example", tcp: false }], production: ["*.prod.example"] });
    const labels = ["data-of-the-project.evil.example", "there.example", "x.prod.example", "metadata.google.internal"];
    for (const name of labels) expect(await ask(name), name).toBe("+");
    expect(lab.asked).toEqual([]);
    Object.assign(LIMITS, { egressNames: 3 });
    for (let index = 0; index < 6; index += 1) await ask(`n${index}.wide.example`);
    expect(lab.asked).toEqual([0, 1, 2].map((index) => `n${index}.wide.example`));
    lab.lets = async (_, host) => host !== "held.wide.example";
    Object.assign(LIMITS, { egressNames: 100 });
    expect(await ask("held.wide.example")).toBe("+");
    expect(await ask("let.wide.example")).toBe("-");
    expect(lab.asked).not.toContain("held.wide.example");
    expect(lab.asked).toContain("let.wide.example");
    // Without the list the same names are asked for, but production and metadata.
    await lab.set({ mode: "public", production: ["*.prod.example"] });
    for (const name of labels) await ask(name);
    expect(labels.filter((name) => lab.asked.includes(name))).toEqual(labels.slice(0, 2));
  });

  test("is asked for once while it is known, and few are remembered", async () => {
    await lab.set({ mode: "public" });
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask("there.example")));
    expect([new Set(answers), lab.asked]).toEqual([new Set(["+"]), ["there.example"]]);
    Object.assign(LIMITS, { egressNamesKept: 2 });
    for (const name of ["one.example", "two.example", "there.example"]) await ask(name);
    expect(lab.asked).toEqual(["there.example", "one.example", "two.example", "there.example"]);
  });

  test("without an answer in time is unknown, and so is one of servers that are down", async () => {
    Object.assign(LIMITS, { egressNameMs: 50 });
    await lab.set({ mode: "public" });
    lab.names.set("slow.example", () => new Promise(() => undefined) as never);
    expect(await ask("slow.example")).toBe("?");
    const resolver = await TestResolver.open();
    const resolve = askServers([resolver.address]);
    await expect(resolve("nosuch.example")).resolves.toEqual([]);
    resolver.close();
    await expect(resolve("nosuch.example")).rejects.toMatchObject({ code: expect.stringMatching(/^(ECONNREFUSED|ETIMEOUT)$/) });
  });

  test("that is none does not exist", async () => {
    await lab.set({ mode: "public" });
    for (const name of ["", "a b.example", "UPPER..example", "-x.example", "a".repeat(260), "127.1"])
      expect(await ask(name), name).toBe("-");
    expect(lab.asked).toEqual([]);
  });
});
