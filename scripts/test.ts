/**
 * Runs the checks beside the tests, and counts both. The last line is always `N passed, N failed, N skipped`.
 * Arguments go to vitest and narrow the run to tests: `npm test -- test/unit --project unit`. Tests under pressure, of runs, and with large programs of others, are apart.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { reportChecks, runChecks } from "./checks.ts";
import { afterSecondLook, forSecondLook, unsteadyParts, type FileRecord, type Run } from "./second-look.ts";
import { STRAY_ERRORS } from "./stray-errors.ts";

interface Count {
  passed: number;
  failed: number;
  skipped: number;
}

const root = join(import.meta.dirname, "..");
const SLOWEST = 15;
const LOOKS = 2;
const WHY_CHARS = 600;
/** Projects that take long, or need large programs of others, each with a script of its own. */
const APART = ["agents", "browser", "notebook", "pressure", "programs", "runs"];
const resultsFile = join(root, ".cache", "vitest.json");
const strayFile = join(root, STRAY_ERRORS);
/** It holds every module of the tests: with the small first heap, collecting garbage takes a good part of its time. */
const ROOMY = "--min-semi-space-size=32";

async function runVitest(args: readonly string[]): Promise<Run> {
  mkdirSync(join(root, ".cache"), { recursive: true });
  for (const file of [resultsFile, strayFile]) rmSync(file, { force: true });
  const exitCode = await new Promise<number>((resolve, reject) => {
    const program = join(root, "node_modules", "vitest", "vitest.mjs");
    const options = [
      "run",
      "--reporter=default",
      "--reporter=json",
      "--reporter=./scripts/stray-errors.ts",
      `--outputFile.json=${resultsFile}`,
    ];
    const child = spawn(process.execPath, [ROOMY, program, ...options, ...args], { cwd: root, stdio: "inherit" });
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 1));
  });
  return { exitCode, files: readResults(), strayErrors: existsSync(strayFile) ? Number(readFileSync(strayFile, "utf8")) : 0 };
}

function readResults(): readonly FileRecord[] | undefined {
  try {
    return (JSON.parse(readFileSync(resultsFile, "utf8")) as { testResults: readonly FileRecord[] }).testResults;
  } catch (error) {
    console.log(`vitest left no results: ${String(error)}`);
    return undefined;
  }
}

/**
 * Runs the few files that failed once more, alone, and what fails again a last time, on a machine that may have come to rest. What then
 * passes does not fail the run, and is named with its first error, so that it gets mended.
 */
async function lookAgain(first: Run): Promise<Run> {
  let run = first;
  for (let look = 0; look < LOOKS; look += 1) {
    const failed = forSecondLook(run);
    if (failed.length === 0) return run;
    console.log("\nOnce more, alone:");
    const again = await runVitest([...failed.map(({ name }) => name), "--maxWorkers=1"]);
    if (again.files === undefined) return run;
    for (const { what, why } of failed.flatMap((file) => unsteadyParts(file, again)))
      console.log(`\nUnsteady: ${what} failed beside others, and passes alone:\n${why}`);
    run = afterSecondLook(run, again);
  }
  return run;
}

function countTests(files: readonly FileRecord[], exitCode: number): Count {
  const count: Count = { passed: 0, failed: 0, skipped: 0 };
  for (const file of files) {
    const failed = file.assertionResults.filter(({ status }) => status === "failed").length;
    const passed = file.assertionResults.filter(({ status }) => status === "passed").length;
    count.passed += passed;
    // A file that could not be loaded, or whose hooks failed, has no failed test to stand for it.
    count.failed += failed === 0 && file.status === "failed" ? 1 : failed;
    count.skipped += file.assertionResults.length - failed - passed;
  }
  // An error outside any test, or a run without tests, shows in the exit code alone.
  if (exitCode !== 0 && count.failed === 0) count.failed = 1;
  return count;
}

function printSkipped(files: readonly FileRecord[]): void {
  const byReason = new Map<string, string[]>();
  for (const file of files) {
    const unknown = file.status === "failed" ? "a hook of their file failed" : "no reason given";
    for (const { status, fullName, meta } of file.assertionResults) {
      if (status === "passed" || status === "failed") continue;
      const reason = meta?.skipReason ?? unknown;
      byReason.set(reason, [...(byReason.get(reason) ?? []), fullName]);
    }
  }
  for (const [reason, names] of byReason) {
    console.log(`\nSkipped, ${reason}:`);
    for (const name of names) console.log(`  ${name}`);
  }
}

/** One line for each failure, for a reader of the end alone. */
function printFailed(files: readonly FileRecord[]): void {
  for (const file of files.filter(({ status }) => status === "failed")) {
    const failed = file.assertionResults.filter(({ status }) => status === "failed");
    const parts = failed.length > 0 ? failed : [{ fullName: "a hook", failureMessages: [file.message] }];
    for (const { fullName, failureMessages = [] } of parts) {
      const why = failureMessages.join(" ").replaceAll(/\s+/g, " ").slice(0, WHY_CHARS);
      console.log(`Failed: ${fullName} (${relative(root, file.name)}): ${why}`);
    }
  }
}

/** Where the time of a run goes: files beside each other have a share of the machine each, so their times add up to more than the run's. */
function printSlowest(files: readonly FileRecord[]): void {
  const seconds = ({ startTime, endTime }: FileRecord): number => (endTime - startTime) / 1000;
  const slowest = files.toSorted((one, other) => seconds(other) - seconds(one)).slice(0, SLOWEST);
  console.log("\nThe slowest files:");
  for (const file of slowest) console.log(`${seconds(file).toFixed(1).padStart(7)} s  ${relative(root, file.name)}`);
}

/** What the run cost, whatever else the machine had to do: of all processes but those that went on after the one that started them. */
function printProcessorTime(): void {
  const [, after = ""] = /\) (.*)/.exec(readFileSync("/proc/self/stat", "utf8")) ?? [];
  // Counted from the field behind the name: user and system time of this process, then of those it waited for, in ticks of 10 ms.
  const ticks = after
    .split(" ")
    .slice(11, 15)
    .reduce((sum, field) => sum + Number(field), 0);
  console.log(`\nProcessor time: ${Math.floor(ticks / 6000)} min ${Math.floor((ticks % 6000) / 100)} s`);
}

const args = process.argv.slice(2);
const isWhole = args.length === 0;
const checking = isWhole ? runChecks() : [];
const narrowed = isWhole ? APART.flatMap((project) => ["--project", `!${project}`]) : args;
const { exitCode, files } = await lookAgain(await runVitest(narrowed));
const failedChecks = reportChecks(await checking);
const count = files === undefined ? { passed: 0, failed: 1, skipped: 0 } : countTests(files, exitCode);
if (files !== undefined && isWhole) printSlowest(files);
if (isWhole && process.platform === "linux") printProcessorTime();
if (files !== undefined) {
  printSkipped(files);
  printFailed(files);
}
count.failed += failedChecks;
console.log(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
process.exitCode = count.failed === 0 ? 0 : 1;
