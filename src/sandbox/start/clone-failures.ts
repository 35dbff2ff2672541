/** Why git could not clone, as a sentence. What git prints holds words of the server that it spoke with: those are never taken. */
import type { CommandResult } from "../../base/schema/command.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Repository } from "../../base/schema/start.ts";
import type { Limits } from "../../base/schema/sandbox.ts";

/** A secret that git was given for the repository. */
export interface Login {
  readonly name: string;
  readonly placeholder: string;
}

const NO_REF = /Remote branch .* not found|reference is not a tree|unable to read tree|pathspec .* did not match/;
const NO_LOGIN = /could not read (Username|Password)|terminal prompts disabled|Authentication failed|returned error: 40[13]/;
const NOT_THERE = /repository '.*' not found|returned error: 404/;
const NO_ROOM = /No space left on device|Disk quota exceeded/;
const SILENT = /Operation too slow/;
const MOST_SHOWN = 300;

/** What is known of a clone that failed, beside what git printed. */
export interface FailedClone extends Repository {
  readonly timeoutMs: number;
  readonly limits: Limits;
  readonly login: Login | undefined;
  /** Whether the proxy refused one of its requests. */
  readonly refused: boolean;
}

export function explainClone({ stderr, end }: Pick<CommandResult, "stderr" | "end">, clone: FailedClone): VivError {
  const { url, ref, timeoutMs, limits, login } = clone;
  const { host } = new URL(url);
  const said = ownWords(stderr);
  if (end?.cause === "timeout" || SILENT.test(said))
    return new VivError("timeout", `The clone of ${url} was not done after ${Math.round((end?.wallMs ?? timeoutMs) / 1000)} s.`, {
      remedy: "Try again, or give it more time with `--git-timeout`.",
    });
  if (end?.cause === "disk-full" || NO_ROOM.test(said))
    return new VivError("too_large", `${url} does not fit on a disk of ${Math.round(limits.diskBytes / 1024 ** 2)} MiB.`, {
      remedy: "Give the sandbox more with `--disk`.",
    });
  if (end?.cause !== "exit")
    return new VivError("clone_failed", `The clone of ${url} ended early: ${end?.message ?? "its sandbox is gone."}`);
  if (NO_REF.test(said)) return new VivError("ref_not_found", `${url} has no branch, tag or commit ${ref ?? "HEAD"}.`);
  if (clone.refused) return refusedHere(url, host, login);
  if (NO_LOGIN.test(said)) return refusedLogin(url, host, login);
  if (NOT_THERE.test(said))
    return new VivError("clone_failed", `${host} has no repository at ${url}, or shows it only with a login.`, {
      remedy: `Check the address. For a private repository: \`viv secret set NAME --host ${host} --all-projects\`.`,
    });
  return new VivError("clone_failed", `${url} can't be cloned: ${said === "" ? `git ended with ${end.exitCode}` : said}.`);
}

function refusedHere(url: string, host: string, login: Login | undefined): VivError {
  const question = login === undefined ? "" : ` A question about the secret ${login.name} may wait: \`viv approvals\`.`;
  return new VivError("clone_failed", `The rules of the network refused the clone of ${url}, which reaches ${host} alone.`, {
    remedy: `Look at \`viv audit\`. A host with a private address is opened by \`network.private\` in the user config.${question}`,
  });
}

function refusedLogin(url: string, host: string, login: Login | undefined): VivError {
  const keep = (name: string): string => `\`viv secret set ${name} --host ${host} --all-projects\``;
  if (login === undefined)
    return new VivError("login_needed", `${host} wants a login for ${url}, and no secret is kept for that host.`, {
      remedy: `Keep a token outside: ${keep("NAME")}. If the login has a user, put it into the address: https://USER@${host}/...`,
    });
  return new VivError("login_needed", `${host} refused the secret ${login.name} for ${url}.`, {
    remedy: `Check what the token may do, and replace it: ${keep(login.name)}.`,
  });
}

/** The first line that git itself wrote about its end, on one line. */
function ownWords(stderr: string): string {
  const line = stderr.split("\n").find((one) => /^(fatal|error): /.test(one)) ?? "";
  return line
    .replace(/^\w+: /, "")
    .replaceAll(/\p{Cc}/gu, " ")
    .slice(0, MOST_SHOWN)
    .replace(/\.$/, "");
}
