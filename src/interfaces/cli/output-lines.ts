/** Recorded output of commands, for people: its colours where these are shown, nothing else that a terminal obeys. */
import type { Screen } from "./screen.ts";
import { clean } from "./text.ts";

const SHOWN_LINES = 12;
const TAB = "    ";

/** Colours; no program writes longer ones. */
// oxlint-disable-next-line no-control-regex
const COLOUR = /^\u001b\[[0-9;:]{0,62}m$/;
/** What moves the cursor, sets titles and so on: control sequences, strings that have an end, and sequences of two characters. */
const SEQUENCE =
  // oxlint-disable-next-line no-control-regex
  /(\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-OQ-WYZ`-~])/;
const RESET = "\u001b[0m";

/** One line as it is shown. Of what a program wrote over with carriage returns, the last stays. */
export function outputLine(line: string, colours: boolean): string {
  const last = line.split("\r").findLast((part) => part !== "") ?? "";
  const parts = last.split(SEQUENCE).map((part, index) => {
    if (index % 2 === 0) return clean(part.replaceAll("\t", TAB));
    return colours && COLOUR.test(part) ? part : "";
  });
  const shown = parts.join("");
  return parts.some((part, index) => index % 2 === 1 && part !== "") ? `${shown}${RESET}` : shown;
}

/** The last line that says something; empty where there is none. */
export function lastOutputLine(output: string): string {
  for (const line of output.split("\n").toReversed()) {
    const shown = outputLine(line, false).trim();
    if (shown !== "") return shown;
  }
  return "";
}

/** The end of an output. */
export function printOutput(screen: Screen, output: string, indent: string): void {
  if (output.trim() === "") return;
  const lines = output.trimEnd().split("\n");
  if (lines.length > SHOWN_LINES) screen.print(screen.paint("dim", `${indent}...`));
  for (const line of lines.slice(-SHOWN_LINES)) screen.print(screen.paint("dim", `${indent}${outputLine(line, screen.colours)}`));
}
