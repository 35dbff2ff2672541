/** The result of an experiment as a table for people. */
import type { Attempt, Experiment, Verdict } from "../../base/schema/experiment.ts";
import { lastOutputLine, printOutput } from "./output-lines.ts";
import { diffText, fineDuration, judgement, looksGood, verdictText } from "./progress.ts";
import { shortId } from "./references.ts";
import type { Screen } from "./screen.ts";
import type { Column } from "./table.ts";
import { ago, bytes, clean, plural } from "./text.ts";

const OUTPUT_INDENT = "      ";

/** An attempt, or the project as it is. */
type Row = { readonly attempt: Attempt } | { readonly baseline: Verdict };

/** The best first. */
export function byRank(one: Attempt, other: Attempt): number {
  return (one.rank ?? Number.MAX_SAFE_INTEGER) - (other.rank ?? Number.MAX_SAFE_INTEGER) || one.index - other.index;
}

/** How an attempt is called wherever one is chosen: by its number, and its name where it has one. */
export function attemptLabel({ index, name }: Pick<Attempt, "index" | "name">): string {
  return name === String(index) ? name : `${index} ${name}`;
}

function ofAttempt(value: (attempt: Attempt) => string, ofBaseline: (verdict: Verdict) => string = () => ""): (row: Row) => string {
  return (row) => ("attempt" in row ? value(row.attempt) : ofBaseline(row.baseline));
}

function exitText({ exitCode, state }: Attempt): string {
  return exitCode === null ? (state === "done" ? "-" : state) : String(exitCode);
}

function checksText(verdict: Verdict | null, measured: boolean): string {
  const measure = measured ? `${verdictText(verdict) === "" ? "" : ", "}measured ${verdict?.measure ?? "nothing"}` : "";
  return verdict === null ? "-" : `${verdictText(verdict)}${measure}` || "-";
}

function columns(screen: Screen, experiment: Experiment): Column<Row>[] {
  const numbered = experiment.attempts.some(({ name, index }) => name === String(index));
  const measured = [experiment.baseline, ...experiment.attempts.map(judgement)].some((verdict) => verdict?.measure != null);
  const command: Column<Row> = { title: "COMMAND", value: ofAttempt((attempt) => attempt.command), shrinks: true };
  const network: Column<Row> = { title: "NETWORK", value: ofAttempt(({ networkBytes }) => bytes(networkBytes)), right: true };
  const cost: Column<Row> = {
    title: "COST",
    value: ofAttempt(({ cost: dollars }) => (dollars === null ? "-" : `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`)),
    right: true,
  };
  return [
    {
      title: "ATTEMPT",
      value: ofAttempt(attemptLabel, () => "baseline"),
      shrinks: true,
      paint: (cell, row) => paintName(screen, cell, row, experiment.winner),
    },
    { title: "EXIT", value: ofAttempt(exitText) },
    {
      title: "CHECKS",
      value: ofAttempt(
        (attempt) => checksText(judgement(attempt), measured),
        (verdict) => checksText(verdict, measured),
      ),
      paint: (cell, row) => paintVerdict(screen, cell, "attempt" in row ? judgement(row.attempt) : row.baseline),
    },
    { title: "DIFF", value: ofAttempt((attempt) => diffText(attempt) || "-") },
    { title: "TIME", value: ofAttempt(({ wallMs }) => (wallMs === null ? "-" : fineDuration(wallMs))), right: true },
    { title: "MEMORY", value: ofAttempt(({ peakMemoryBytes }) => bytes(peakMemoryBytes)), right: true },
    ...(experiment.attempts.some(({ networkBytes }) => (networkBytes ?? 0) > 0) ? [network] : []),
    ...(experiment.attempts.some(({ cost: dollars }) => dollars !== null) ? [cost] : []),
    ...(numbered ? [command] : []),
  ];
}

function paintName(screen: Screen, cell: string, row: Row, winner: number | null): string {
  if (!("attempt" in row)) return screen.paint("dim", cell);
  return row.attempt.index === winner ? screen.paint("bold", screen.paint("green", cell)) : cell;
}

function paintVerdict(screen: Screen, cell: string, verdict: Verdict | null): string {
  if (verdict === null || (verdict.checks.length === 0 && verdict.setup === null)) return cell;
  return screen.paint(verdict.passed ? "green" : "red", cell);
}

/** What a person should know of an attempt before choosing it, a sentence each. */
function notesOf(attempt: Attempt): string[] {
  const { protectedChanged, needs, sideChanges, reruns } = attempt;
  const flaky = (judgement(attempt)?.checks ?? []).filter((check) => check.flaky);
  const notes = [
    ...(attempt.reason === null ? [] : [attempt.reason]),
    ...failureNotes(judgement(attempt)),
    ...(protectedChanged.length === 0 ? [] : [`edited protected files, and was judged with the original ones: ${some(protectedChanged)}`]),
    ...(attempt.fewerTests === null ? [] : [attempt.fewerTests]),
    ...(needs.length === 0 ? [] : [`needs besides its change: ${some(needs)}`]),
    ...flaky.map(({ command, runs }) => `flaky, passed and failed in ${runs} runs: ${command}`),
    ...(sideChanges.length === 0 ? [] : [`changed, too, but not promoted: ${some(sideChanges)}`]),
    ...(reruns === 0 ? [] : [`began again ${plural(reruns, "time")}`]),
    ...attempt.flags,
  ];
  return [...new Set(notes)];
}

/** The first check that failed, and the end of its output. */
function failureNotes(verdict: Verdict | null): string[] {
  const { setup = null, checks = [] } = verdict ?? {};
  const failed = setup ?? checks.find(({ passed }) => !passed);
  if (failed === undefined || failed.passed) return [];
  const said = lastOutputLine(failed.output);
  const end = failed.cause === null ? `ended with ${failed.exitCode}` : `ended by ${failed.cause}`;
  return said === "" ? [] : [`the ${setup === null ? "check" : "setup"} \`${failed.command}\` ${end}: ${said}`];
}

function some(items: readonly string[], most = 3): string {
  const rest = items.length - most;
  return rest > 0 ? `${items.slice(0, most).join(", ")} and ${rest} more` : items.join(", ");
}

/** The comparison, and the notes. */
export function printTable(screen: Screen, experiment: Experiment): void {
  const attempts = experiment.attempts.toSorted(byRank);
  const rows: Row[] = attempts.map((attempt) => ({ attempt }));
  if (experiment.baseline !== null && experiment.checks.length > 0) rows.push({ baseline: experiment.baseline });
  screen.table(rows, columns(screen, experiment));
  const notes = attempts.flatMap((attempt) => notesOf(attempt).map((note) => ({ name: attempt.name, note })));
  if (notes.length > 0) screen.print();
  for (const { name, note } of notes) screen.print(`${screen.paint("yellow", clean(name))}: ${clean(note)}`);
}

/** The sentence of the choice. */
export function printChoice(screen: Screen, experiment: Experiment): void {
  if (experiment.reason !== null) {
    screen.print();
    screen.print(screen.paint(experiment.winner === null ? "yellow" : "green", clean(experiment.reason)));
  }
}

/** What can be done now. Names of sandboxes by their ids, where they are known. */
export function nextSteps(experiment: Experiment, names: ReadonlyMap<string, string>): [line: string, what: string][] {
  const id = shortId(experiment.id);
  const winner = experiment.attempts.find(({ index }) => index === experiment.winner);
  const steps: [string, string][] = [];
  const sandbox = (attempt: Attempt | undefined): string | undefined =>
    attempt?.sandbox == null ? undefined : (names.get(attempt.sandbox) ?? attempt.sandbox);
  if (winner !== undefined && experiment.promotion === null) {
    const name = sandbox(winner);
    if (name !== undefined) steps.push([`viv diff --patch ${name}`, "read the winner's change"]);
    if (experiment.git === undefined) steps.push([`viv promote ${id}`, "bring it into the project; `viv undo` takes it back"]);
  }
  if (winner === undefined) {
    const kept = experiment.attempts.filter((attempt) => sandbox(attempt) !== undefined);
    const best = kept.filter(looksGood).toSorted(byRank)[0] ?? kept[0];
    if (best !== undefined) steps.push([`viv diff ${sandbox(best) ?? ""}`, `what ${best.name} changed`]);
    steps.push([`viv experiment ${id}`, "all of it, with the end of each output"]);
    if (kept.some((attempt) => looksGood(attempt) && (attempt.diff?.files ?? 0) > 0))
      steps.push([`viv experiment ${id} pick NAME`, "choose one yourself"]);
  }
  return steps;
}

function printVerdict(screen: Screen, title: string, verdict: Verdict | null): void {
  const checks = [verdict?.setup ?? null, ...(verdict?.checks ?? [])].filter((check) => check !== null);
  if (checks.length === 0) return;
  screen.print(`  ${title}:`);
  for (const check of checks) {
    const result = check.passed ? screen.paint("green", "passed") : screen.paint("red", `failed with ${check.exitCode}`);
    const cause = check.cause === null ? "" : `, ${clean(check.cause)}`;
    screen.print(`    ${clean(check.command)}: ${result}${cause}, ${fineDuration(check.wallMs)}`);
    if (!check.passed) printOutput(screen, check.output, OUTPUT_INDENT);
  }
}

/** One attempt with the end of its outputs. */
export function printAttempt(screen: Screen, attempt: Attempt): void {
  screen.print();
  screen.print(`${screen.paint("bold", clean(attempt.name))}: ${clean(attempt.command)}`);
  const end = attempt.exitCode === null ? attempt.state : `${attempt.state}, exit code ${attempt.exitCode}`;
  const cpu = attempt.cpuMs === null ? "" : `, ${fineDuration(attempt.cpuMs)} of CPU time`;
  screen.print(`  ${end}${attempt.wallMs === null ? "" : `, ${fineDuration(attempt.wallMs)}`}${cpu}`);
  if (attempt.sandbox !== null) screen.print(`  sandbox ${attempt.sandbox}`);
  if (attempt.output.trim() !== "") {
    screen.print("  output:");
    printOutput(screen, attempt.output, OUTPUT_INDENT);
  }
  printVerdict(screen, "checks where it ran", attempt.checked);
  printVerdict(screen, "checks on its change alone, in a fresh clone", attempt.verified);
}

/** Who, where, when. */
export function printHead(screen: Screen, experiment: Experiment): void {
  screen.fields([
    ["experiment", `${experiment.id}, ${experiment.state}`],
    ["project", clean(experiment.git ?? experiment.project)],
    ["started", ago(experiment.createdAt)],
    ["checks", experiment.checks.map(clean).join("; ") || "none"],
    ["order", experiment.rules.join(", ")],
    ...(experiment.promotion === null ? [] : [["promotion", experiment.promotion] as const]),
  ]);
  screen.print();
}
