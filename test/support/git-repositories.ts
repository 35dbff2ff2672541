/** Bare repositories to clone from, made by the real git. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

function git(cwd: string, ...words: readonly string[]): string {
  const settings = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"];
  return execFileSync("git", [...settings, ...words], { cwd, stdio: "pipe" })
    .toString()
    .trim();
}

/** Repositories of one folder: `app.git` with a branch and a tag, `empty.git`, `large.git`, and `modules.git` with a submodule. */
export function makeRepositories(place: string): { first: string; second: string } {
  const work = join(place, "work");
  mkdirSync(work);
  git(work, "init", "-q", "-b", "main", ".");
  writeFileSync(join(work, "file"), "one\n");
  writeFileSync(join(work, ".gitignore"), "*.log\n");
  git(work, "add", ".");
  git(work, "commit", "-qm", "first");
  git(work, "tag", "v1");
  const first = git(work, "rev-parse", "HEAD");
  writeFileSync(join(work, "file"), "two\n");
  git(work, "commit", "-qam", "second");
  git(work, "branch", "feature/x");
  const second = git(work, "rev-parse", "HEAD");
  git(place, "clone", "-q", "--bare", work, "app.git");
  git(place, "init", "-q", "--bare", "empty.git");
  git(work, "checkout", "-q", "-b", "modules");
  writeFileSync(join(work, ".gitmodules"), `[submodule "m"]\n\tpath = m\n\turl = http://other.test/secret.git\n`);
  git(work, "add", ".");
  git(work, "update-index", "--add", "--cacheinfo", `160000,${first},m`);
  git(work, "commit", "-qm", "modules");
  git(place, "clone", "-q", "--bare", "--single-branch", "-b", "modules", work, "modules.git");
  git(work, "checkout", "-q", "main");
  execFileSync("sh", ["-c", "head -c 64M /dev/urandom > large"], { cwd: work });
  git(work, "add", "large");
  git(work, "commit", "-qm", "large");
  git(place, "clone", "-q", "--bare", work, "large.git");
  return { first, second };
}
