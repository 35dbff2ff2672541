/** Which projects a secret is for: by options, or asked on a terminal. */
import { resolve } from "node:path";
import type { OptionDeclarations } from "./command.ts";
import { clean } from "./text.ts";
import { usageError } from "./values.ts";

export const PROJECT_OPTIONS = {
  project: {
    type: "list",
    short: "p",
    value: "PATH",
    completes: "path",
    summary: "Sandboxes of this project use it; may be given several times",
  },
  "all-projects": { type: "flag", summary: "Sandboxes of every project use it" },
} as const satisfies OptionDeclarations;

interface ProjectOptions {
  readonly project: readonly string[];
  readonly "all-projects": boolean;
}

/** As options say it; undefined if they don't. Null stands for all. */
export function givenProjects({ project, "all-projects": all }: ProjectOptions, cwd: string): string[] | null | undefined {
  if (all && project.length > 0) throw usageError("--project and --all-projects exclude each other.");
  if (all) return null;
  return project.length === 0 ? undefined : project.map((path) => resolve(cwd, path));
}

/** Asks on a terminal. Elsewhere an option has to say it: viv does not guess for whom a secret is. */
export async function askProjects(what: string, cwd: string): Promise<string[] | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw usageError(`Which projects may use ${what}?`, "Add --project PATH for one project, or --all-projects.");
  const { createInterface } = await import("node:readline/promises");
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    for (;;) {
      const choices = `[t]his one (${clean(cwd)}), [a]ll, or [n]one yet: each asks at its first use`;
      const answer = (await prompt.question(`Which projects may use ${what}? ${choices}: `)).trim().toLowerCase();
      if (answer === "t" || answer === "this") return [cwd];
      if (answer === "a" || answer === "all") return null;
      if (answer === "n" || answer === "none") return [];
    }
  } finally {
    prompt.close();
  }
}

/** For tables and sentences. */
export function shownProjects(projects: readonly string[] | null): string {
  if (projects === null) return "all";
  return projects.length === 0 ? "none; each asks" : projects.map(clean).join(", ");
}
