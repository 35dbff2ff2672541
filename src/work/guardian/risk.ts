/** SNAP-5: actions before which a snapshot is taken, because they destroy work that no other file holds. */
import { compile, matches } from "../../base/policy/pattern.ts";
import { partsOf, partsOfWords, type Part } from "../../base/policy/parts.ts";
import type { PolicyAction } from "../../base/schema/policy.ts";
import { isMadeAgain } from "./made-again.ts";

/** Commands of git that throw work away or put other files in its place. */
const DESTROYING = [
  "reset, restore, clean, rebase, merge, pull, cherry-pick, revert, am, apply, filter-branch",
  "checkout, switch, stash, update-ref, reflog, gc, worktree remove, submodule",
]
  .flatMap((line) => line.split(", "))
  .map((words) => compile(`git ${words} *`));
/** Commands that change data, or many files at once. */
const CHANGING = [
  "*migrate*, *db:*, dropdb *, createdb *, *prisma *, psql *, mysql *, sqlite3 *, mongosh *, redis-cli *",
  "*codemod*, jscodeshift *, *--fix*, *--write*, rsync *--delete*, find *-delete*, find *-exec*, xargs *, dd *, truncate *, git branch *-D*",
]
  .flatMap((line) => line.split(", "))
  .map(compile);
const RUNNING = ["npx *", "npm exec *", "bunx *", "pnpm dlx *", "yarn dlx *", "uvx *", "pipx run *"].map(compile);

/** Why a snapshot is worth its milliseconds first, one sentence; null if it is not. It allows and refuses nothing. */
export function riskOf(action: PolicyAction): string | null {
  if (action.kind === "path") return action.access === "delete" && !isMadeAgain(action.path) ? `It deletes ${action.path}.` : null;
  if (action.kind !== "command") return null;
  const parts = typeof action.command === "string" ? partsOf(action.command) : partsOfWords(action.command);
  return parts.map(riskOfPart).find((reason) => reason !== null) ?? null;
}

function riskOfPart(part: Part): string | null {
  if (part.kind === "problem") return "It could not be read, so it may do anything.";
  if (part.kind === "command") {
    if (DESTROYING.some((pattern) => matches(pattern, part.text))) return "It changes what git has checked out or knows.";
    if (CHANGING.some((pattern) => matches(pattern, part.text))) return "It changes data or many files at once.";
    // A package that is only run leaves the project as it is.
    const isRun = RUNNING.some((pattern) => matches(pattern, part.text));
    return (
      part.effects.map((effect) => (isRun && effect.kind === "package" ? null : riskOfPart(effect))).find((reason) => reason !== null) ??
      null
    );
  }
  if (part.kind === "package") return "It installs packages.";
  return part.kind === "path" && part.access === "delete" && !isMadeAgain(part.path.text) ? `It deletes ${part.path.text}.` : null;
}
