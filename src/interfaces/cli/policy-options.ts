/** Options and words that the commands about the policy share. */
import { resolve } from "node:path";
import { AUTONOMY_LEVELS, ROLES, YOLO_LEVELS } from "../../base/schema/choices.ts";
import type { InputOf } from "../../base/schema/contracts.ts";
import type { Verdict } from "../../base/schema/policy.ts";
import type { OptionDeclarations, OptionValues } from "./command.ts";
import type { Screen } from "./screen.ts";
import { usageError } from "./values.ts";

export const AUTONOMY_OPTIONS = {
  level: { type: "integer", completes: AUTONOMY_LEVELS.map(String), value: "N", summary: "Autonomy level of its agents, 1 to 3" },
  yolo: { type: "integer", completes: YOLO_LEVELS.map(String), value: "N", summary: "Auto-approval level instead, 1 to 4" },
  role: {
    type: "text",
    completes: ROLES,
    value: "ROLE",
    summary: "Role of its agents: worker, reviewer or coordinator",
  },
} as const satisfies OptionDeclarations;

export const POLICY_OPTIONS = {
  level: { type: "integer", completes: AUTONOMY_LEVELS.map(String), value: "N", summary: "Autonomy level, 1 to 3" },
  yolo: { type: "integer", completes: YOLO_LEVELS.map(String), value: "N", summary: "Auto-approval level, 1 to 4, instead" },
  role: {
    type: "text",
    completes: ROLES,
    value: "ROLE",
    summary: "worker, reviewer or coordinator; worker if left out",
  },
  project: {
    type: "text",
    short: "p",
    value: "PATH",
    completes: "path",
    summary: "Project whose rules apply; that of the current folder if left out",
  },
  sandbox: {
    type: "text",
    short: "s",
    value: "SANDBOX",
    completes: "sandbox",
    summary: "As it is enforced in this sandbox, instead of the four above",
  },
} as const satisfies OptionDeclarations;

type Autonomy = Pick<InputOf<"createSandbox">, "level" | "yolo" | "role">;
type PolicyInput = InputOf<"agentInstructions">;

/** The four options above as the API takes them. */
export function asked({ sandbox, project, ...given }: OptionValues<typeof POLICY_OPTIONS>, cwd: string): PolicyInput {
  const chosen = autonomy(given);
  if (sandbox === undefined) return { project: resolve(cwd, project ?? "."), ...chosen };
  if (project !== undefined || Object.keys(chosen).length > 0)
    throw usageError("--sandbox stands for its project, level and role.", "Leave those out.");
  return { sandbox };
}

export function autonomy({ level, yolo, role }: OptionValues<typeof AUTONOMY_OPTIONS>): Autonomy {
  if (level !== undefined && yolo !== undefined) throw usageError("--level and --yolo exclude each other.");
  return {
    ...(level === undefined ? {} : { level: oneOf("--level", AUTONOMY_LEVELS, level) }),
    ...(yolo === undefined ? {} : { yolo: oneOf("--yolo", YOLO_LEVELS, yolo) }),
    ...(role === undefined ? {} : { role: oneOf("--role", ROLES, role) }),
  };
}

export function oneOf<Value extends number | string>(option: string, values: readonly Value[], given: unknown): Value {
  const found = values.find((value) => value === given);
  if (found === undefined) throw usageError(`${option} is ${values.slice(0, -1).join(", ")} or ${values.at(-1) ?? ""}.`);
  return found;
}

/** One word is a shell line, several are a program and its arguments. */
export function commandAction(words: readonly string[]): { kind: "command"; command: string | string[] } {
  return { kind: "command", command: words.length === 1 ? (words[0] ?? "") : [...words] };
}

const COLOURS = { allow: "green", ask: "yellow", deny: "red" } as const;
export function paintVerdict(screen: Pick<Screen, "paint">, text: string, verdict: Verdict): string {
  return screen.paint(COLOURS[verdict], text);
}
