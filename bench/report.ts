/** The results as a table for people and as one object for programs. */
import { cpus, release, totalmem } from "node:os";
import { round } from "./measure.ts";
import { ROWS, type Key, type Measured, type Outcome } from "./rows.ts";

export type Results = ReadonlyMap<Key, Outcome>;
type Verdict = "pass" | "MISSED" | "BROKEN" | "none" | "info";

export function verdictOf(key: Key, outcome: Outcome): Verdict {
  if ("error" in outcome) return "BROKEN";
  if ("reason" in outcome) return "none";
  const { limit, least } = ROWS[key];
  if (limit === null && least === undefined) return "info";
  return outcome.figure <= (limit ?? Infinity) && outcome.figure >= (least ?? -Infinity) ? "pass" : "MISSED";
}

function machine(): Record<string, unknown> {
  return {
    kernel: release(),
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? "unknown",
    memory_mib: Math.round(totalmem() / 1024 ** 2),
    node: process.version,
  };
}

/** Figures at the top, each by its key, null where there is none; raw values and reasons in `details`. */
export function toJson(results: Results, options: { quick: boolean; seconds: number }): string {
  const figures: Record<string, number | null> = {};
  const details: Record<string, unknown> = {};
  for (const [key, outcome] of results) {
    const measured = "figure" in outcome;
    figures[key] = measured ? outcome.figure : null;
    const verdict = verdictOf(key, outcome);
    const pass = verdict === "pass" ? true : verdict === "MISSED" ? false : null;
    details[key] = { ...ROWS[key], pass, ...outcome };
  }
  return JSON.stringify({ ...figures, details, quick: options.quick, seconds: round(options.seconds), machine: machine() });
}

const HEADINGS = ["key", "figure", "limit", "", "medians and more"];

export function toTable(results: Results): string {
  const lines = [...results].map(([key, outcome]) => {
    const { unit, limit, least } = ROWS[key];
    const bounds = [...(least === undefined ? [] : [`>= ${least}`]), ...(limit === null ? [] : [`<= ${limit}`])];
    const figure = "figure" in outcome ? show(outcome.figure, unit) : "null";
    return [key, figure, bounds.join(", "), verdictOf(key, outcome), remark(outcome)];
  });
  const widths = HEADINGS.map((heading, column) => Math.max(heading.length, ...lines.map((line) => line[column]?.length ?? 0)));
  const rule = widths.map((width) => "-".repeat(width));
  const aligned = [HEADINGS, rule, ...lines].map((line) =>
    line
      .map((text, column) => (column === 1 ? text.padStart(widths[1] ?? 0) : text.padEnd(widths[column] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
  return aligned.join("\n");
}

function show(figure: number, unit: string): string {
  const text = unit === "" || (unit === "x" && figure < 0.1) ? String(figure) : figure.toFixed(2);
  return unit === "x" || unit === "" ? text : `${text} ${unit}`;
}

function remark(outcome: Outcome): string {
  if ("reason" in outcome) return outcome.reason;
  if ("error" in outcome) return outcome.error.split("\n")[0] ?? "";
  return [
    ...medians(outcome),
    ...Object.entries(outcome.more ?? {})
      .filter(([name]) => !name.endsWith("_before"))
      .map(([name, value]) => `${name} ${value}`),
  ].join(", ");
}

function medians({ raw }: Measured): string[] {
  return Object.entries(raw).map(([name, { median, unit }]) => `${name} ${median.toFixed(2)} ${unit}`);
}
