/** From no agent on the machine to one that starts in every sandbox: `viv agents`, `viv agents install`, and what they say on the way. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Agent } from "../../src/base/schema/agent-contracts.ts";
import { KNOWN_AGENTS } from "../../src/base/schema/known-agents.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv, type Answer } from "../support/viv.ts";

const CLAUDE = KNOWN_AGENTS["claude"];
const VERSION = CLAUDE?.version ?? "";
const PROGRAM = CLAUDE?.programs(process.arch)[0] ?? "";
/** Fetches a Claude Code that only knows its version. */
const NPM = `#!/bin/sh
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$(dirname "$2/${PROGRAM}")"
printf '#!/bin/sh\\ntest "$1" = --version && echo "${VERSION} (Claude Code), as $(id -u)"\\n' > "$2/${PROGRAM}"
chmod +x "$2/${PROGRAM}"
`;

function program(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, 0o755);
}

const USERS = [
  { title: "root", uid: undefined, capabilities: ["root"] },
  { title: "an ordinary user", uid: 64_124, capabilities: ["root", "user-namespaces", "open-checkout"] },
] as const;

describe.each(USERS)("agents of a server of $title", ({ uid, capabilities }) => {
  describe("on a machine without any", needs(...capabilities), () => {
    let tools: string;
    let server: TestServer;
    /** Without the programs of this machine's own PATH. */
    const path = (): string => `${tools}:${dirname(process.execPath)}:/usr/bin:/bin`;
    const call = (...words: readonly string[]): Answer => viv(server, words, { cwd: server.project, env: { PATH: path() } });
    const claude = async (): Promise<Agent | undefined> =>
      (await server.client.call("listAgents", { path: path(), project: server.project })).agents.find(({ name }) => name === "claude");

    beforeAll(async () => {
      tools = mkdtempSync(join(tmpdir(), "viv-tools-"));
      chmodSync(tools, 0o755);
      server = await TestServer.start({ env: { PATH: path() }, ...(uid === undefined ? {} : { uid }) });
    });
    afterAll(async () => {
      await server?.remove();
      rmSync(tools, { recursive: true });
    });

    test("a task is refused in one sentence that says what to type, and the list and the doctor say the same", async () => {
      expect(await claude()).toMatchObject({ title: "Claude Code", program: null, from: null, login: "missing", installs: VERSION });
      const task = call("task", "Fix it");
      expect([task.code, task.out]).toEqual([2, ""]);
      expect(task.err).toContain("Claude Code is not on this machine.");
      expect(task.err).toContain("viv agents install claude");
      const listed = call("agents");
      expect(listed.out).toMatch(/^claude +Claude Code +not here +no *$/m);
      expect(listed.err).toContain("viv agents install claude");
      expect(call("doctor").out).toMatch(/! agents: Not on this machine: claude.*\n {4}Run `viv agents install claude`/);
      expect(call("agents", "install", "emacs")).toMatchObject({ code: 2, err: expect.stringContaining("There is no agent emacs") });
    });

    test("an install that finds no registry leaves nothing and says why", async () => {
      program(join(tools, "npm"), "#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 1\n");
      const offline = call("agents", "install", "claude");
      expect(offline).toMatchObject({ code: 1, out: "" });
      expect(offline.err).toContain("npm can't reach its registry");
      expect(await claude()).toMatchObject({ program: null });
    });

    test("an installed one is seen by every sandbox at the same place, starts there, and can't be changed for others", async () => {
      program(join(tools, "npm"), NPM);
      const early = await server.create({});
      const installed = call("agents", "install", "claude");
      expect(installed.err).toContain("viv agents login claude");
      expect(installed.out).toBe(
        `Claude Code ${VERSION} is at ${server.paths.home}/agents/claude/${VERSION}/${PROGRAM}, here and in every sandbox.\n`,
      );
      const found = await claude();
      expect(found).toMatchObject({ from: "installed", version: VERSION, login: "missing" });
      const at = found?.program ?? "";
      for (const box of [early, await server.create({})]) {
        expect((await server.sh(box.id, `"${at}" --version`)).stdout).toContain(`${VERSION} (Claude Code)`);
        expect((await server.sh(box.id, `ls -A "${server.paths.home}"`)).stdout).toBe("agents\nruntimes\n");
        await server.sh(box.id, `chmod -R u+w "${server.paths.home}/agents"; echo changed > "${at}"`);
      }
      expect(readFileSync(at, "utf8")).toContain("Claude Code");
      expect((await server.sh((await server.create({})).id, `"${at}" --version`)).stdout).toContain(VERSION);
    });

    test("a probe starts it inside and tells its version, and one that does not start is told as that", async () => {
      const listed = call("agents", "--probe");
      expect(listed.out).toMatch(new RegExp(`^claude +Claude Code +${VERSION} +viv agents install +no +runs \\(`, "m"));
      expect((await server.client.call("listSandboxes", {})).sandboxes.every(({ project }) => project === server.project)).toBe(true);
      const { agents } = JSON.parse(call("agents", "--probe", "--json").out) as { agents: (Agent & { probe: unknown })[] };
      expect(agents.find(({ name }) => name === "claude")).toMatchObject({ probe: { works: true, version: VERSION } });
    });
  });
});
