/** Names of branches: `fix/T-12-what-it-does`, and what no branch may be called. */
import { run } from "../../base/host/run.ts";
import { VivError } from "../../base/schema/errors.ts";

export const BRANCH_KINDS = ["fix", "feat", "chore", "docs", "refactor", "test", "perf"] as const;
export type BranchKind = (typeof BRANCH_KINDS)[number];

interface BranchWords {
  readonly kind?: BranchKind;
  readonly ticket?: string;
  /** Its first line becomes the slug. */
  readonly message: string;
}

const MOST_SLUG_CHARACTERS = 50;
const MOST_NAME_BYTES = 200;
const TICKET = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,38}[A-Za-z0-9])?$/;
/** `fix: ` or `feat(parser)!: ` at the head of a message says what the name's kind says. */
const PREFIX = new RegExp(`^(?:${BRANCH_KINDS.join("|")})(?:\\([^)]*\\))?!?:\\s*`, "i");

export async function branchName({ kind = "fix", ticket, message }: BranchWords): Promise<string> {
  if (!BRANCH_KINDS.includes(kind)) throw new VivError("invalid_input", `The kind of a branch is one of ${BRANCH_KINDS.join(", ")}.`);
  const id = ticket?.replace(/^#/, "");
  if (id !== undefined && !TICKET.test(id))
    throw new VivError("invalid_input", "A ticket is made of letters, digits, dots, dashes and underscores, at most 40 of them.");
  const name = `${kind}/${id === undefined ? "" : `${id}-`}${slugOf(message)}`;
  await requireBranchName(name);
  return name;
}

/** Lower-case words with dashes between them, cut at a word. */
function slugOf(message: string): string {
  const [line = ""] = message.trim().split("\n");
  const words = line
    .replace(PREFIX, "")
    .normalize("NFKD")
    .replace(/\p{Mark}|['\u2019]/gu, "")
    .toLowerCase()
    .match(/[a-z0-9]+/g);
  if (words === null) return "change";
  let slug = (words[0] ?? "").slice(0, MOST_SLUG_CHARACTERS);
  for (const word of words.slice(1)) {
    if (slug.length + 1 + word.length > MOST_SLUG_CHARACTERS) break;
    slug += `-${word}`;
  }
  return slug;
}

/**
 * Git's plumbing takes names that its commands then read as options or expressions, so a name is asked about first: by git, and
 * by the rules that git's own answer depends on where it stands.
 */
export async function requireBranchName(name: string): Promise<void> {
  const refuse = (): never => {
    throw new VivError("invalid_input", `${JSON.stringify(name.slice(0, MOST_NAME_BYTES))} can't be the name of a branch.`);
  };
  if (Buffer.byteLength(name) > MOST_NAME_BYTES || !/^[\p{L}\p{N}_][\p{L}\p{N}._/#+=,-]*$/u.test(name)) refuse();
  if (/^(?:HEAD|refs|heads|tags|remotes)(?:\/|$)/i.test(name) || /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(name)) refuse();
  // Outside any repository there is nothing that an expression could stand for.
  const { code, stdout } = await run("git", ["check-ref-format", "--branch", name], { cwd: "/" });
  if (code !== 0 || stdout.toString() !== `${name}\n`) refuse();
}
