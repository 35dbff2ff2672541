/** What a sandbox starts from: as options say it, and for people. */
import type { CreateInput } from "../../base/schema/contracts.ts";
import type { Sandbox } from "../../base/schema/sandbox.ts";
import { WORKSPACE } from "../../base/schema/workspace.ts";
import type { OptionDeclarations, OptionValues } from "./command.ts";
import { clean } from "./text.ts";
import { usageError } from "./values.ts";

export const REPOSITORY_OPTIONS = {
  git: { type: "text", value: "URL", summary: "Start from this git repository instead of a project; it is cloned inside" },
  ref: { type: "text", value: "REF", summary: "With --git: the branch, tag or commit; the repository's own branch if left out" },
  "git-timeout": { type: "duration", value: "TIME", summary: "With --git: how long the clone may take; 10m if left out" },
} as const satisfies OptionDeclarations;

/** Undefined where the options name none. */
export function repository(options: OptionValues<typeof REPOSITORY_OPTIONS>): CreateInput["git"] {
  const { git: url, ref, "git-timeout": timeoutMs } = options;
  if (url !== undefined) return { url, ...(ref === undefined ? {} : { ref }), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  if (ref !== undefined || timeoutMs !== undefined) throw usageError("--ref and --git-timeout need --git URL.");
  return undefined;
}

/** For a table: short, and the same for sandboxes that share a start. */
export function startText({ start, project }: Pick<Sandbox, "start" | "project">): string {
  if (start === null) return clean(project);
  return start.from === "empty" ? "an empty workspace" : clean(start.url);
}

/** For a sentence. */
export function startSentence(sandbox: Pick<Sandbox, "start" | "project">): string {
  const { start } = sandbox;
  if (start === null) return `cloned from ${startText(sandbox)}`;
  if (start.from === "empty") return `with an empty ${WORKSPACE}`;
  return `with ${startText(sandbox)} at ${WORKSPACE}${start.commit === null ? "" : `, commit ${start.commit.slice(0, 12)}`}`;
}
