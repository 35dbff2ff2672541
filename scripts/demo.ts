/** The demo: a project with a bug, three approaches at once, the best one promoted to it, and taken back. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { shellLine } from "../src/base/schema/shell-words.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const place = mkdtempSync(join(tmpdir(), "vivarium-demo-"));
const project = join(place, "shop");
const config = join(place, "config.json");
const env = {
  ...process.env,
  PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
  VIV_HOME: join(place, "state"),
  VIV_CONFIG: config,
};
const began = performance.now();

const bold = (text: string): string => (process.stdout.isTTY ? `\x1b[1m${text}\x1b[0m` : text);
const say = (text = ""): void => void process.stdout.write(`${text}\n`);
const step = (title: string, what: string): void => say(`\n${bold(title)}\n${what}\n`);

/** Runs the command line as a person would, and shows what they would see. */
function viv(...args: string[]): void {
  say(`$ ${shellLine(["viv", ...args])}`);
  const { status } = spawnSync(join(root, "bin/viv"), args, { cwd: project, env, stdio: "inherit" });
  if (status !== 0) throw new Error(`viv ${args[0] ?? ""} ended with ${status ?? "a signal"}`);
}

function quiet(...args: string[]): string {
  return execFileSync(join(root, "bin/viv"), args, { cwd: project, env, encoding: "utf8" });
}

function testsPass(): boolean {
  return spawnSync("npm", ["test"], { cwd: project, env, stdio: "ignore" }).status === 0;
}

function expectTests(pass: boolean): void {
  const found = testsPass();
  say(`$ npm test    # in the real project: ${found ? "passes" : "fails"}`);
  if (found !== pass) throw new Error(`the tests should ${pass ? "pass" : "fail"} now`);
}

function show(): void {
  step("1. A project with a bug", "Its last commit brought discounts, and a test that fails: half a cent is rounded down.");
  execFileSync("bash", [join(root, "examples/three-way-bug-fix/make.sh"), project], { env, stdio: "ignore" });
  expectTests(false);

  step(
    "2. Three approaches at once",
    "Each runs in a clone of this machine: same files, same programs, uncommitted work included. The same check judges each.",
  );
  const cents = "return Math.round((Math.round(total(items) * 100) * (100 - percent)) / 100) / 100;";
  viv(
    "try",
    "--attempt",
    "upgrade=npm install --offline --no-audit --no-fund ./vendor/money-round-1.1.0.tgz",
    "--attempt",
    `patch=sed -i 's|return round(total.*|${cents}|' src/cart.js`,
    "--attempt",
    "revert=git -c user.name=me -c user.email=me@example.com revert --no-edit HEAD",
    "--check",
    "npm test",
    "--setup",
    "npm ci --offline --no-audit --no-fund",
  );

  step("3. Reality has not noticed", "Nothing of all that has touched the project.");
  expectTests(false);

  step("4. Promote the winner", "Its change, and only that, is written into the project: all of it or nothing.");
  const { experiments } = JSON.parse(quiet("experiments", "--json")) as { experiments: { id: string }[] };
  viv("promote", experiments[0]?.id ?? "", "--message", "Round discounted prices in cents");
  expectTests(true);

  step("5. Undo", "One command takes it back, exactly.");
  viv("undo");
  expectTests(false);
  if (execFileSync("git", ["status", "--porcelain"], { cwd: project }).length > 0) throw new Error("the project is not as it was");
}

function main(): void {
  writeFileSync(config, "{}");
  try {
    show();
    say(`\nAll of this took ${((performance.now() - began) / 1000).toFixed(1)} s.`);
    say(`Your turn: in a project of yours, ${bold("viv try 'one way' 'another way' --check 'npm test'")} (bin/viv in this checkout).`);
  } finally {
    quiet("prune", "--all");
    quiet("down");
  }
}

try {
  main();
} finally {
  rmSync(place, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
}
