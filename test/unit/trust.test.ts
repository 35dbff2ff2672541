import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadProjectConfig, type LoadedConfig } from "../../src/base/config/project-config.ts";

let project = "";
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "viv-trust-"));
});
afterEach(() => rmSync(project, { recursive: true }));

function load(config: object, trusted: string | null = null): LoadedConfig {
  writeFileSync(join(project, "vivarium.json"), JSON.stringify(config));
  return loadProjectConfig(project, trusted);
}

const WIDE = {
  limits: { cpus: 1, memory: "64g" },
  expose: ["/root/.ssh"],
  env: { pass: ["TOKEN"], set: { A: "1" }, drop: ["B"] },
  services: { web: { command: "true" } },
  sudo: true,
  driver: "folder",
  idle: 0,
  capture: { limit: "1t", exclude: ["big"] },
};

describe("a project's config that no person trusted", () => {
  test("can only tighten", () => {
    const { config, trusted, widens } = load(WIDE);
    expect(trusted).toBe(false);
    expect(widens.map(({ key }) => key)).toEqual([
      "expose",
      "env.pass",
      "env.set",
      "services",
      "sudo",
      "driver",
      "limits",
      "idle",
      "capture.limit",
    ]);
    expect(config).toEqual({
      limits: { cpus: 1 },
      mask: [],
      checks: [],
      network: { allow: [], production: [], tightenOnly: true },
      expose: [],
      env: { pass: [], set: {}, drop: ["B"] },
      services: {},
      automations: {},
      sudo: false,
      capture: { exclude: ["big"], live: [] },
    });
  });

  test("needs no trust where it widens nothing", () => {
    const { config, trusted } = load({
      limits: { memory: "1g" },
      idle: "10m",
      mask: ["secrets"],
      driver: "native",
      capture: { limit: "1g" },
    });
    expect(trusted).toBe(true);
    expect(config).toMatchObject({ limits: { memory: 1024 ** 3 }, idle: 600_000, mask: ["secrets"] });
  });
});

describe("a trusted config", () => {
  test("takes effect as a whole, until its content changes", () => {
    const { hash } = load(WIDE);
    expect(load(WIDE, hash).config).toMatchObject({ limits: { memory: 64 * 1024 ** 3 }, sudo: true, idle: 0, driver: "folder" });
    expect(load({ ...WIDE, sudo: false }, hash)).toMatchObject({ trusted: false, config: { limits: { cpus: 1 }, expose: [] } });
  });
});

describe("trust in lines that run on this machine", () => {
  const files = (all: Record<string, string>): void => {
    for (const [path, text] of Object.entries(all)) {
      mkdirSync(dirname(join(project, path)), { recursive: true });
      writeFileSync(join(project, path), text);
    }
  };
  const staged = (line: string): object => ({ stages: [{ name: "live", apply: { run: line } }] });

  test.each<[string, Record<string, string>, string[]]>([
    ["./deploy.sh --now", { "deploy.sh": "true" }, ["deploy.sh"]],
    ["bash -eu deploy", { deploy: "true" }, ["deploy"]],
    [". ./env && true", { env: "A=1" }, ["env"]],
    ["cd ops && sh -c 'exec ./go.sh'", { "ops/go.sh": "true" }, ["ops/go.sh"]],
    ['"$PWD/deploy.sh"', { "deploy.sh": "true" }, ["deploy.sh"]],
    ["node tools/deploy", { "tools/deploy.js": 'require("./lib")', "tools/lib.js": "1" }, ["tools/deploy.js", "tools/lib.js"]],
    ["python3 -m deploy", { "deploy.py": "1" }, ["deploy.py"]],
    ["./deploy.sh", { "deploy.sh": ". ./lib/common.sh", "lib/common.sh": "true" }, ["deploy.sh", "lib/common.sh"]],
    ["make -C ops live", { "ops/Makefile": "live:\n\t./go.sh\n", "ops/go.sh": "true" }, ["ops/Makefile", "ops/go.sh"]],
    ["npm run live", { "package.json": '{"scripts":{"live":"./go.sh"}}', "go.sh": "true" }, ["go.sh", "package.json#live"]],
    ["ansible-playbook --inventory=hosts.ini site.yml", { "hosts.ini": "", "site.yml": "" }, ["hosts.ini", "site.yml"]],
    ["run-parts migrations", { "migrations/1.sh": "true" }, ["migrations/1.sh"]],
    ["./deploy.sh > result.json", { "deploy.sh": "true", "result.json": "1" }, ["deploy.sh"]],
    ["rm -f state.txt", { "state.txt": "1" }, []],
  ])("%s is for the files that it runs", (line, all, expected) => {
    files(all);
    expect(load(staged(line)).runs.files).toEqual(expected);
  });

  test("ends when one of the files changes, and is there again with its old content", () => {
    files({ "deploy.sh": ". lib.sh", "lib.sh": "true" });
    const config = { ...staged("./deploy.sh"), sudo: true };
    const { hash } = load(config);
    expect(load(config, hash)).toMatchObject({ trusted: true, untrusted: [] });
    files({ "lib.sh": "evil" });
    // Lines alone wait: what else was trusted did not change, and stages may ask for approvals.
    expect(load(config, hash)).toMatchObject({ trusted: false, untrusted: ["stages"], config: { sudo: true, stages: [{}] } });
    files({ "lib.sh": "true" });
    expect(load(config, hash).trusted).toBe(true);
    files({ "other.txt": "x" });
    expect(load(config, hash).trusted).toBe(true);
  });

  test("ends when one of very many files changes", () => {
    files(Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`migrations/${index}.sql`, "select 1"])));
    const config = staged("for f in migrations/*.sql; do psql -f $f; done");
    const { hash } = load(config);
    expect(load(config, hash).trusted).toBe(true);
    files({ "migrations/99.sql": "\\! id; select 1" });
    expect(load(config, hash).trusted).toBe(false);
  });

  test("stands words that every object knows, scripts that are none, and thousands of scripts", () => {
    const scripts = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`s${index}`, "npm s0 s1 s2 ".repeat(600)]));
    files({ "package.json": JSON.stringify({ scripts, filler: "x".repeat(500_000) }) });
    const began = performance.now();
    expect(load(staged("constructor toString npm run s0")).runs.files.length).toBeGreaterThan(0);
    expect(performance.now() - began).toBeLessThan(5000);
    files({ "package.json": '{"scripts":null}' });
    expect(load(staged("npm run s0")).runs.files).toEqual([]);
  });

  test("looks at so much and no more, and never into what a link out of the project leads to", () => {
    const many = Array.from({ length: 3000 }, (_, index) => `./x${index}/y`).join(" ");
    files(Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`s${index}.sh`, `./s${index + 1}.sh ${many}`])));
    symlinkSync("/proc/kmsg", join(project, "s100.sh"));
    const began = performance.now();
    const { runs } = load(staged("sh s100.sh; ./s0.sh"));
    expect(performance.now() - began).toBeLessThan(5000);
    expect(runs.files).toEqual(expect.arrayContaining(["s0.sh", "s1.sh", "s100.sh"]));
  });

  test("is asked for again where it was given before files counted", () => {
    files({ "deploy.sh": "true" });
    const { hash } = load(staged("./deploy.sh"));
    expect(load(staged("./deploy.sh"), hash?.split(".")[0] ?? "")).toMatchObject({ trusted: false, untrusted: ["stages"] });
  });

  test("keeps a service's line from running, and the service from starting without its data", () => {
    files({ "dump.sh": "true" });
    const services = { db: { command: "db", data: ["/var/lib/db"], take: "./dump.sh" }, web: { command: "web" } };
    const { hash } = load({ services });
    files({ "dump.sh": "evil" });
    const { config, untrusted } = load({ services }, hash);
    expect([Object.keys(config.services), untrusted]).toEqual([["web"], ["services"]]);
  });

  test("names files that are not there yet, and the folders on the way to them", () => {
    const { names } = load(staged("scripts/deploy.sh")).runs;
    expect([names.has("scripts/deploy.sh"), names.has("scripts"), names.has("src/x.sh")]).toEqual([true, true, false]);
  });
});
