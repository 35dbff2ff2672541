/** Where a sandbox starts that is no clone of a project of this machine. */
import { z } from "zod";
import { redact } from "./secret-patterns.ts";
import { WORKSPACE } from "./workspace.ts";

const HOUR_MS = 3_600_000;

/** A token may stand where the user should; names of people are shorter. */
function isToken(username: string): boolean {
  return username.length >= 32 || redact(username) !== username;
}

/** Why a repository is not cloned from this address; undefined if it can be. */
function refusal(text: string): string | undefined {
  if (/^[\w.-]+@[^/]+:|^(git\+)?ssh:/i.test(text)) return "a repository is cloned over https://, not ssh: no key of yours goes inside";
  if (!/^https?:\/\//i.test(text)) return "a repository has an address that begins with https:// or http://";
  // oxlint-disable-next-line no-control-regex
  if (/[\s\x00-\x1f\x7f\\]/.test(text) || !URL.canParse(text)) return "this is no address";
  const { username, password, search, hash, pathname } = new URL(text);
  if (password !== "" || isToken(username))
    return "a password or a token does not belong into an address: keep it outside with `viv secret set`";
  if (search !== "" || hash !== "" || pathname === "/") return "an address of a repository has a path, and nothing behind it";
  return undefined;
}

const RepositoryUrl = z
  .string()
  .max(2048)
  .superRefine((text, context) => {
    const why = refusal(text);
    if (why !== undefined) context.addIssue({ code: "custom", message: why });
  })
  .describe("Its address, over https:// or http://.");

const RepositoryRef = z
  .string()
  .max(255)
  .regex(/^[A-Za-z0-9_][^\s~^:?*[\\\p{Cc}]*$/u, "a ref is the name of a branch or a tag, or a whole commit id")
  .refine((ref) => !ref.includes("..") && !ref.includes("@{"), "a ref is one name, no range")
  .describe("Branch, tag or whole commit id; the repository's own branch if left out.");

export const Repository = z
  .strictObject({
    url: RepositoryUrl,
    ref: RepositoryRef.optional(),
    timeoutMs: z.number().int().min(1000).max(HOUR_MS).optional().describe("How long the clone may take; ten minutes if left out."),
  })
  .describe("A git repository that is cloned into the new sandbox.");
export type Repository = z.infer<typeof Repository>;

export const StartingPoint = z
  .discriminatedUnion("from", [
    z.object({
      from: z.literal("git").describe("A git repository."),
      url: z.string().describe("Its address."),
      ref: z.string().nullable().describe("The branch, tag or commit that was asked for."),
      commit: z.string().nullable().describe("The commit that was cloned; null for a repository without one."),
    }),
    z.object({ from: z.literal("empty").describe("An empty workspace.") }),
  ])
  .describe(`What it was made from, where that is no project of this machine. Its files are then at ${WORKSPACE} inside.`);
export type StartingPoint = z.infer<typeof StartingPoint>;
