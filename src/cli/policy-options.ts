/** Options and words that the commands about the policy share. */
import { resolve } from "node:path";
import type { InputOf } from "../schema/contracts.ts";
import type { Verdict } from "../schema/policy.ts";
import type { Screen } from "./screen.ts";
import { usageError } from "./values.ts";

export const POLICY_OPTIONS = {
  level: { type: "integer", value: "N", summary: "Autonomy level, 1 to 3" },
  yolo: { type: "integer", value: "N", summary: "Auto-approval level, 1 to 4, instead" },
  role: { type: "text", value: "ROLE", summary: "worker, reviewer or coordinator; worker if left out" },
  project: { type: "text", short: "p", value: "PATH", summary: "Project whose rules hold; that of the current folder if left out" },
} as const;

interface Given {
  readonly level: number | undefined;
  readonly yolo: number | undefined;
  readonly role: string | undefined;
  readonly project: string | undefined;
}

type Asked = InputOf<"agentInstructions">;

export function asked({ level, yolo, role, project }: Given, cwd: string): Asked {
  if (level !== undefined && yolo !== undefined) throw usageError("--level and --yolo exclude each other.");
  if (level !== undefined && ![1, 2, 3].includes(level)) throw usageError("--level is 1, 2 or 3.");
  if (yolo !== undefined && ![1, 2, 3, 4].includes(yolo)) throw usageError("--yolo is 1, 2, 3 or 4.");
  if (role !== undefined && role !== "worker" && role !== "reviewer" && role !== "coordinator")
    throw usageError("--role is worker, reviewer or coordinator.");
  return {
    project: resolve(cwd, project ?? "."),
    ...(level === undefined ? {} : { level }),
    ...(yolo === undefined ? {} : { yolo }),
    ...(role === undefined ? {} : { role }),
  };
}

/** One word is a shell line, several are a program and its arguments. */
export function commandAction(words: readonly string[]): { kind: "command"; command: string | string[] } {
  return { kind: "command", command: words.length === 1 ? (words[0] ?? "") : [...words] };
}

const COLOURS = { allow: "green", ask: "yellow", deny: "red" } as const;
export function paintVerdict(screen: Screen, text: string, verdict: Verdict): string {
  return screen.paint(COLOURS[verdict], text);
}
