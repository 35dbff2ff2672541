import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LIMITS } from "../../base/schema/limits.ts";
import { NO_NETWORK, type NetworkRules } from "../../base/schema/network.ts";
import { closedRegistries } from "./closed-registries.ts";
import { namedRegistries } from "./registries.ts";

const PUBLIC: NetworkRules = { ...NO_NETWORK, mode: "public" };
const NAMES: Readonly<Record<string, readonly string[]>> = {
  "npm.corp.example": ["10.0.0.7"],
  "open.example": ["93.184.215.14"],
  "own.example": ["93.184.215.15"],
  "mixed.example": ["10.0.0.8", "169.254.169.254"],
  nexus: ["192.168.0.2"],
};

let home: string;
let project: string;
let asked: string[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "viv-registries-"));
  project = join(home, "project");
  mkdirSync(project);
  asked = [];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function settings(folder: string, ...places: string[]): void {
  writeFileSync(join(folder, ".npmrc"), places.map((place) => `registry=${place}/\n`).join(""));
}

/** Of the files of this test; the machine's own may name others. */
async function closed(
  rules: NetworkRules = PUBLIC,
  lookUp = async (host: string) => NAMES[host] ?? Promise.reject(new Error("no such name")),
): Promise<string[]> {
  const resolve = (host: string): Promise<readonly string[]> => (asked.push(host), lookUp(host));
  async function* here(): ReturnType<typeof namedRegistries> {
    for await (const named of namedRegistries(project, home)) if (named.file.startsWith(home)) yield named;
  }
  const found = await closedRegistries(here(), { rules, opened: [], own: ["93.184.215.15"], resolve });
  return found.map(({ host, port, why }) => `${host} ${port} ${why}`);
}

test("registries that a person's files name are told if their name or address is private, or their port closed", async () => {
  settings(home, "https://npm.corp.example", "https://u:p@open.example:8443", "https://open.example", "https://own.example");
  const more = ["http://nexus", "http://[fd00::7]:4873", "https://mixed.example", "https://gone.example", "https://pypi.org"];
  const never = ["http://169.254.169.254", "http://localhost:4873", "http://127.0.0.2"];
  appendFileSync(join(home, ".npmrc"), [...more, ...never, "# http://10.9.9.9", "; http://10.9.9.9"].join("\n"));
  expect(await closed()).toEqual([
    "npm.corp.example 443 private address",
    "open.example 8443 port",
    "own.example 443 private address",
    "nexus 80 private address",
    "fd00::7 4873 private address",
  ]);
  expect(asked).toEqual(["npm.corp.example", "open.example", "own.example", "nexus", "mixed.example", "gone.example"]);
});

test("a project's file causes no query, unless a person's own file names the same registry", async () => {
  settings(project, "https://npm.corp.example", "http://nexus", "http://10.1.2.3", "https://open.example:8443");
  expect(await closed()).toEqual(["10.1.2.3 80 private address", "open.example 8443 port"]);
  expect(asked).toEqual([]);
  settings(home, "http://nexus");
  expect(await closed()).toContain("nexus 80 private address");
  expect(asked).toEqual(["nexus"]);
});

test("in a home that is the project, files are the project's", async () => {
  project = home;
  settings(home, "https://npm.corp.example", "http://10.1.2.3");
  expect(await closed()).toEqual(["10.1.2.3 80 private address"]);
  expect(asked).toEqual([]);
});

test("what the rules open, never open, or leave to a list is not told", async () => {
  settings(home, "https://npm.corp.example", "https://open.example:8443", "http://10.1.2.3", "http://10.1.2.3:8080");
  const opened = { host: "10.1.2.3", ports: [80], tcp: false };
  const rules = { ...PUBLIC, private: [opened], ports: [443, 8443], production: ["npm.corp.example"] };
  expect(await closed(rules)).toEqual(["10.1.2.3 8080 private address"]);
  expect(await closed({ ...PUBLIC, mode: "allow-list" })).toEqual(["10.1.2.3 80 private address", "10.1.2.3 8080 private address"]);
});

test("names that are not answered for are waited for together and not for long, and no more than a few registries are told", async () => {
  const silent = Array.from({ length: 10 }, (_, index) => `https://${index}.example`);
  settings(home, ...silent, ...Array.from({ length: 20 }, (_, index) => `http://10.1.2.${index}`));
  const begun = performance.now();
  const told = await closed(PUBLIC, () => new Promise(() => undefined));
  expect(told).toHaveLength(LIMITS.closedRegistries);
  expect(performance.now() - begun).toBeLessThan(5 * LIMITS.closedRegistriesMs);
});
