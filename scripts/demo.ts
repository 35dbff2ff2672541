/** The demo: clone this machine, wreck the clone, see that reality is untouched, roll back, fork, throw away. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startServer } from "../src/cli/start.ts";
import { Client } from "../src/client/client.ts";
import { findPaths } from "../src/config/paths.ts";
import { VivError } from "../src/schema/errors.ts";

const place = mkdtempSync(join(tmpdir(), "vivarium-demo-"));
const project = join(place, "shop");
const paths = findPaths({ ...process.env, VIV_HOME: join(place, "state"), VIV_CONFIG: join(place, "config.json") });
const bold = (text: string): string => (process.stdout.isTTY ? `\x1b[1m${text}\x1b[0m` : text);
const say = (text = ""): void => void process.stdout.write(`${text}\n`);

async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work();
  say(`  ${what.padEnd(58)} ${(performance.now() - began).toFixed(1).padStart(8)} ms`);
  return result;
}

function makeProject(): void {
  mkdirSync(join(project, "src"), { recursive: true });
  writeFileSync(join(project, "src/price.js"), "export const price = (net) => net * 1.19;\n");
  writeFileSync(join(project, "README.md"), "# Shop\n");
  writeFileSync(join(project, "notes.txt"), "uncommitted, and still in every clone\n");
  const git = (...args: string[]): void =>
    void execFileSync("git", ["-c", "user.name=demo", "-c", "user.email=demo@example.com", ...args], { cwd: project, stdio: "ignore" });
  git("init");
  git("add", "src", "README.md");
  git("commit", "-m", "A shop");
}

const inReality = (): string => `${readdirSync(project).length} entries in the project, ${readdirSync("/usr").length} in /usr`;

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

async function run(client: Client, sandbox: string, line: string): Promise<string> {
  const result = await client.call("runCommand", { sandbox, command: ["/bin/sh", "-c", line] });
  return result.stdout.trim();
}

async function show(client: Client): Promise<void> {
  const status = await client.call("status", {});
  const walled = status.driver === "native";
  if (!walled)
    say(bold("UNWALLED: this machine can't put walls around a sandbox; `viv doctor` says what would. A copy of the folder is used.\n"));
  const before = inReality();

  say(bold("1. Clone this machine: same files, same packages, uncommitted work included"));
  const first = await timed("first clone of the project", () => client.call("createSandbox", { project, unwalled: !walled }));
  await client.call("removeSandbox", { sandbox: first.id });
  const box = await timed("clone again: nothing changed, so nothing is copied", () =>
    client.call("createSandbox", { project, name: "demo", unwalled: !walled }),
  );
  say(`  inside: ${await run(client, box.id, "cat notes.txt")}`);
  if (walled)
    say(`  inside: ${await run(client, box.id, '. /etc/os-release && echo "$PRETTY_NAME, $(ls /usr/bin | wc -l) programs in /usr/bin"')}`);
  await timed("snapshot, to come back to", () => client.call("createSnapshot", { sandbox: box.id, name: "good" }));

  say(bold("\n2. Wreck it"));
  const wreck = walled ? "rm -rf ./* ./.git /usr 2>/dev/null; echo done" : "rm -rf ./* ./.git; echo done";
  await timed(walled ? "rm -rf of the project and of /usr, inside" : "rm -rf of the project, in the copy", () =>
    run(client, box.id, wreck),
  );
  if (walled)
    say(
      `  inside: ${await run(client, box.id, "ls").catch((error: unknown) => (error instanceof VivError ? error.message : String(error)))}`,
    );
  say(`  reality before: ${before}`);
  say(`  reality now:    ${inReality()}`);
  if (before !== inReality()) throw new Error("reality has changed");

  say(bold("\n3. Roll back, and fork"));
  await timed("rollback to the snapshot: the whole system, not just files", () =>
    client.call("rollback", { sandbox: box.id, snapshot: "good" }),
  );
  say(`  inside: ${await run(client, box.id, "cat src/price.js")}`);
  const { sandboxes } = await timed("fork into three", () => client.call("forkSandbox", { sandbox: box.id, count: 3 }));
  const rates = ["1.07", "1.19", "1.25"];
  await timed("each fork goes its own way, at once", () =>
    Promise.all(sandboxes.map((fork, index) => run(client, fork.id, `sed -i 's/1.19/${rates[index] ?? "1"}/' src/price.js`))),
  );
  for (const fork of sandboxes) say(`  ${fork.name.padEnd(14)} ${await run(client, fork.id, "cat src/price.js")}`);

  say(bold("\n4. Throw away"));
  await timed("destroy all four", () => Promise.all([box, ...sandboxes].map(({ id }) => client.call("removeSandbox", { sandbox: id }))));
  say(`  reality:        ${inReality()}`);
  say(`\nYour turn: cd into a project of yours and run ${bold("viv create")} (bin/viv in this checkout).`);
}

async function main(): Promise<number> {
  makeProject();
  await startServer(paths, { env: process.env, report: say });
  const client = new Client({ socket: paths.socket });
  const { pid } = await client.call("status", {});
  try {
    await show(client);
    return 0;
  } finally {
    await client.call("prune", { all: true }).catch(() => undefined);
    await client.call("shutdown", {});
    client.close();
    // Its storage is unmounted when it has ended, and not before.
    while (isAlive(pid)) await delay(10);
  }
}

try {
  process.exitCode = await main();
} finally {
  rmSync(place, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
}
