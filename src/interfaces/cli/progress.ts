/** How an experiment goes on, for people: a line per attempt, drawn over in place, or a line per step where that can't be. */
import type { Attempt, Experiment, Verdict } from "../../base/schema/experiment.ts";
import { LiveLines } from "./live-lines.ts";
import type { Colour, Screen } from "./screen.ts";
import { table } from "./table.ts";
import { clean, duration, plural } from "./text.ts";

const ENDED: ReadonlySet<Attempt["state"]> = new Set(["done", "failed", "cancelled"]);
/** Steps that get a line without a terminal; the others are too short. */
const REPORTED: ReadonlySet<Attempt["state"]> = new Set(["running", "checking", "verifying", "done", "failed", "cancelled"]);

/** "2/2, 14 tests" or "1/2, 3 of 14 tests fail"; empty without checks. */
export function verdictText(verdict: Verdict | null): string {
  if (verdict === null) return "";
  if (verdict.setup !== null && !verdict.setup.passed) return "setup failed";
  if (verdict.checks.length === 0) return "";
  const passed = verdict.checks.filter((check) => check.passed).length;
  const counted = verdict.checks.flatMap(({ tests }) => (tests === null ? [] : [tests]));
  const failed = counted.reduce((sum, tests) => sum + tests.failed, 0);
  const all = counted.reduce((sum, tests) => sum + tests.failed + tests.passed, 0);
  const tests =
    all === 0 ? "" : failed === 0 ? `, ${plural(all, "test")}` : `, ${failed} of ${plural(all, "test")} ${failed === 1 ? "fails" : "fail"}`;
  return `${passed}/${verdict.checks.length}${tests}`;
}

/** "2 files +10 -3". */
export function diffText({ diff }: Attempt): string {
  if (diff === null) return "";
  return diff.files === 0 ? "nothing" : `${plural(diff.files, "file")} +${diff.added} -${diff.removed}`;
}

/** Judged by its change alone where that was tried. */
export function judgement(attempt: Attempt): Verdict | null {
  return attempt.verified ?? attempt.checked;
}

/** Whether it is right on its own: its command ran, and no check failed. */
export function looksGood(attempt: Attempt): boolean {
  return attempt.state === "done" && attempt.exitCode === 0 && judgement(attempt)?.passed !== false;
}

/** Fine enough to compare by. */
export function fineDuration(ms: number): string {
  return ms >= 1000 && ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms);
}

function elapsed(attempt: Attempt, now: number): string {
  if (attempt.startedAt === null) return "";
  const end = attempt.endedAt === null ? now : Date.parse(attempt.endedAt);
  const ms = Math.max(0, end - Date.parse(attempt.startedAt));
  return attempt.endedAt === null ? `${Math.floor(ms / 1000)} s` : fineDuration(ms);
}

function mark(attempt: Attempt, frame: string): string {
  if (attempt.state === "queued") return "·";
  if (!ENDED.has(attempt.state)) return frame;
  return looksGood(attempt) ? "✓" : "✗";
}

function colour(attempt: Attempt): Colour {
  if (attempt.state === "queued") return "dim";
  if (!ENDED.has(attempt.state)) return "cyan";
  return looksGood(attempt) ? "green" : "red";
}

/** What comes last on its line: why it failed, what it changed, or what it does. */
function remark(attempt: Attempt): string {
  if (attempt.reason !== null) return attempt.reason;
  return diffText(attempt) || attempt.command;
}

interface Line {
  readonly name: string;
  readonly cells: readonly [mark: string, state: string, time: string, checks: string, remark: string];
  readonly colour: Colour;
}

function attemptLine(attempt: Attempt, frame: string): Line {
  const cells = [
    mark(attempt, frame),
    attempt.state,
    elapsed(attempt, Date.now()),
    verdictText(judgement(attempt)),
    remark(attempt),
  ] as const;
  return { name: attempt.name, cells, colour: colour(attempt) };
}

function baselineLine({ baseline }: Experiment, frame: string): Line {
  if (baseline === null) return { name: "baseline", cells: [frame, "checking", "", "", "the project as it is"], colour: "dim" };
  const state = baseline.passed ? "passes" : "fails";
  return { name: "baseline", cells: [" ", state, "", verdictText(baseline), "the project as it is"], colour: "dim" };
}

export class Progress {
  readonly #screen: Screen;
  readonly #lines: LiveLines;
  readonly #reported = new Map<number | "baseline", string>();
  #experiment: Experiment | undefined;

  constructor(screen: Screen) {
    this.#screen = screen;
    this.#lines = new LiveLines(screen, (frame) => this.#render(frame));
  }

  update(experiment: Experiment): void {
    this.#experiment = experiment;
    if (this.#screen.canvas === undefined) this.#report(experiment);
    else this.#lines.redraw();
  }

  say(line: string): void {
    this.#lines.say(line);
  }

  /** Leaves the terminal to something else. */
  hold(): void {
    this.#lines.hold();
  }

  release(): void {
    this.#lines.release();
  }

  end(): void {
    this.#lines.end({ keep: false });
  }

  #render(frame: string): string[] {
    const experiment = this.#experiment;
    if (experiment === undefined) return [];
    const rows = experiment.attempts.map((attempt) => attemptLine(attempt, frame));
    if (experiment.checks.length > 0) rows.push(baselineLine(experiment, frame));
    const paint = (cell: string, line: Line): string => this.#screen.paintRemark(line.colour, cell);
    const [, ...lines] = table(
      rows,
      [
        { title: "", value: ({ cells }) => cells[0], paint },
        { title: "", value: ({ name }) => name, shrinks: true },
        { title: "", value: ({ cells }) => cells[1], paint },
        { title: "", value: ({ cells }) => cells[2], right: true },
        { title: "", value: ({ cells }) => cells[3] },
        { title: "", value: ({ cells }) => cells[4], shrinks: true, paint: (cell) => this.#screen.paintRemark("dim", cell) },
      ],
      { columns: this.#screen.canvas?.columns },
    );
    return lines;
  }

  #report(experiment: Experiment): void {
    for (const attempt of experiment.attempts) {
      if (!REPORTED.has(attempt.state) || this.#reported.get(attempt.index) === attempt.state) continue;
      this.#reported.set(attempt.index, attempt.state);
      const { cells } = attemptLine(attempt, "");
      const details = ENDED.has(attempt.state) ? cells.slice(2).filter((cell) => cell !== "") : [];
      this.#screen.say(clean([`${attempt.name}: ${attempt.state}`, ...details].join(", ")));
    }
    if (experiment.baseline === null || this.#reported.has("baseline") || experiment.checks.length === 0) return;
    this.#reported.set("baseline", "reported");
    this.#screen.say(`baseline: ${experiment.baseline.passed ? "passes" : "fails"}, ${verdictText(experiment.baseline)}`);
  }
}
