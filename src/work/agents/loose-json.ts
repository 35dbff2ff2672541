/** Reading JSON of a program that may write anything: what is not as expected is empty, and nothing throws. */
import { isNestedDeeply } from "../../base/schema/nesting.ts";

export type Loose = Readonly<Record<string, unknown>>;

const EMPTY: Loose = {};
/** Levels that no sensible value has, far fewer than a stack has room for. */
const DEEPEST = 128;

export function record(value: unknown): Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : EMPTY;
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A whole number of zero or more. */
export function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined;
}

/** The object that a line holds, if it holds one. One that is nested deeper than anything sensible counts as none. */
export function parseObject(line: string): Loose | undefined {
  if (!line.startsWith("{") || isNestedDeeply(line, DEEPEST)) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : undefined;
  } catch {
    return undefined;
  }
}
