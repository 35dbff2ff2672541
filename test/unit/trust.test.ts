import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadProjectConfig, type LoadedConfig } from "../../src/config/project-config.ts";

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

describe("a project's config that nobody trusted", () => {
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
