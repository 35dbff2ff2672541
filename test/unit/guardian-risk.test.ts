/** Before which actions a snapshot is taken. */
import { describe, expect, test } from "vitest";
import { riskOf } from "../../src/work/guardian/risk.ts";

function riskOfCommand(command: string): string | null {
  return riskOf({ kind: "command", command });
}

describe("a snapshot is taken first", () => {
  test.each([
    "rm -rf src",
    "cd web && rm -r components",
    "git reset --hard HEAD~3",
    "git checkout -- .",
    "git clean -fd",
    "git stash",
    "git rebase main",
    "bash -c 'rm -rf lib'",
    "find . -name '*.ts' -delete",
    "npx prisma migrate reset",
    "npm run db:reset",
    "npx eslint --fix src",
    "npx prettier --write .",
    "npm install left-pad",
    "pip install numpy",
    "rsync -a --delete a/ b/",
    "$(echo rm) -rf $HOME/x; rm x",
    "if then fi (((",
  ])("before %s", (command) => {
    expect(riskOfCommand(command)).not.toBeNull();
  });

  test("before a file is deleted by a tool, and before words that delete", () => {
    expect(riskOf({ kind: "path", path: "src/a.ts", access: "delete" })).toBe("It deletes src/a.ts.");
    expect(riskOf({ kind: "command", command: ["rm", "-rf", "src"] })).toBe("It deletes src.");
  });
});

describe("no snapshot is taken", () => {
  test.each([
    "npm test",
    "git status --short",
    "git diff",
    "git log --oneline",
    "git commit -am 'remove old code'",
    "ls -la",
    "cat package.json | head",
    "rm -rf node_modules dist",
    "rm /tmp/x.json",
    "rm -f debug.log",
    "grep -rn 'rm -rf' src",
    "echo 'git reset --hard'",
    "npm run build",
    "python reproduce.py",
    "npx tsc --noEmit",
  ])("before %s", (command) => {
    expect(riskOfCommand(command)).toBeNull();
  });

  test("before files are read and written, and before hosts are asked", () => {
    expect(riskOf({ kind: "path", path: "src/a.ts", access: "write" })).toBeNull();
    expect(riskOf({ kind: "tool", tool: "edit", argument: "src/a.ts" })).toBeNull();
    expect(riskOf({ kind: "host", host: "example.com" })).toBeNull();
  });
});
