/** MCP-2: one line sets a chat client up: the change is shown, the rest of the file stays, and the way back leads to the same bytes. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Terminal } from "../support/terminal.ts";
import { viv } from "../support/viv.ts";

let place: string;
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "viv-clients-"));
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** A home folder of its own; nothing here needs a server. */
function homeOf(name: string): { place: string; paths: { home: string; config: string } } {
  const home = join(place, name);
  mkdirSync(home);
  return { place: home, paths: { home: join(home, "state"), config: join(home, "viv.json") } };
}
const install = (home: ReturnType<typeof homeOf>, ...words: readonly string[]) => viv(home as never, ["mcp", "install", ...words]);

describe("viv mcp install", () => {
  test.for<[string, string, string]>([
    ["claude", ".claude.json", '{\n  "numStartups": 3,\n  "mcpServers": {}\n}\n'],
    ["claude-desktop", ".config/Claude/claude_desktop_config.json", '{"mcpServers":{"other":{"command":"x"}}}'],
    ["cursor", ".cursor/mcp.json", ""],
    ["vscode", ".config/Code/User/mcp.json", '{\n\t// servers of mine\n\t"servers": {},\n}\n'],
    ["opencode", ".config/opencode/opencode.jsonc", '{ "$schema": "https://opencode.ai/config.json", /* mine */ "model": "a/b" }\n'],
    ["codex", ".codex/config.toml", 'model = "x" # mine\n\n[mcp_servers.other]\ncommand = "y"\n'],
    ["gemini", ".gemini/settings.json", '{\n    "security": { "auth": {} }\n}\n'],
  ])("MCP-2: writes into the settings of %s, keeps what is there, and brings the same bytes back", ([client, path, before]) => {
    const home = homeOf(client);
    const file = join(home.place, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, before);
    chmodSync(file, 0o640);
    const printed = install(home, client, "--print");
    expect(printed.code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(before);
    const set = install(home, client);
    expect({ code: set.code, err: set.err }).toMatchObject({ code: 0, err: expect.stringContaining(`This changes ${file}`) });
    expect(set.out).toContain("can use Vivarium now");
    const after = readFileSync(file, "utf8");
    for (const word of before.match(/mine|other|numStartups|security|\$schema/g) ?? []) expect(after).toContain(word);
    expect(after).toContain("/bin/viv");
    expect(after).toContain(home.paths.home);
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(install(home, client).out).toContain("is set up already");
    expect(install(home, client, "--undo").out).toContain("is as it was");
    expect(readFileSync(file, "utf8")).toBe(before);
    expect(install(home, client, "--undo").out).toContain("nothing to take back");
  });

  test("makes a file where there was none, and removes it on the way back", () => {
    const home = homeOf("new");
    expect(install(home, "cursor", "--project", home.place).code).toBe(0);
    const file = join(home.place, ".cursor/mcp.json");
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
      mcpServers: { vivarium: { command: expect.stringMatching(/^\/.*\/bin\/viv$/), args: ["mcp", "--project", home.place] } },
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(install(home, "cursor", "--undo").code).toBe(0);
    expect(existsSync(file)).toBe(false);
  });

  test("MCP-2: writes the tools that were chosen, and refuses a tool that there is not", () => {
    const home = homeOf("tools");
    expect(install(home, "cursor", "--tools", "nonsense")).toMatchObject({ code: 2, err: expect.stringContaining('no tool "nonsense"') });
    expect(existsSync(join(home.place, ".cursor"))).toBe(false);
    expect(install(home, "cursor", "--tools", "default,notebook").code).toBe(0);
    expect(JSON.parse(readFileSync(join(home.place, ".cursor/mcp.json"), "utf8"))).toMatchObject({
      mcpServers: { vivarium: { args: ["mcp", "--tools", "default,notebook"] } },
    });
    expect(install(home, "codex", "--print", "--tools", "wait").out).toContain('"--tools", "wait"');
  });

  test("MCP-2: says what to type before the first task, until an agent has its login", () => {
    const home = homeOf("first");
    const { out } = install(home, "claude-desktop");
    expect(out).toMatch(/an agent, which has to be there once[^]*viv agents install claude [^]*viv agents login claude [^]*Then ask it/);
    install(home, "claude-desktop", "--undo");
    writeFileSync(home.paths.config, '{ "models": { "anthropic": { "secret": "anthropic" } } }');
    expect(install(home, "claude-desktop").out).not.toContain("viv agents");
  });

  test("takes back only its own entry where another program has written since", () => {
    const home = homeOf("since");
    install(home, "cursor");
    const file = join(home.place, ".cursor/mcp.json");
    const now = JSON.parse(readFileSync(file, "utf8")) as { mcpServers: object };
    writeFileSync(file, JSON.stringify({ mcpServers: { ...now.mcpServers, later: { command: "z" } } }));
    expect(install(home, "cursor", "--undo").code).toBe(0);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ mcpServers: { later: { command: "z" } } });
  });

  test("leaves a link a link, and a file that it can't read alone", () => {
    const home = homeOf("link");
    mkdirSync(join(home.place, ".cursor"));
    writeFileSync(join(home.place, "real.json"), "{}");
    symlinkSync("../real.json", join(home.place, ".cursor/mcp.json"));
    expect(install(home, "cursor").code).toBe(0);
    expect(lstatSync(join(home.place, ".cursor/mcp.json")).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(home.place, "real.json"), "utf8")).toContain("vivarium");
    const broken = homeOf("broken");
    mkdirSync(join(broken.place, ".gemini"));
    writeFileSync(join(broken.place, ".gemini/settings.json"), '{ "a": ');
    const refused = install(broken, "gemini");
    expect(refused.code).not.toBe(0);
    expect(refused.err).toMatch(/can't be read \(line 1.*nothing was changed/);
    expect(readFileSync(join(broken.place, ".gemini/settings.json"), "utf8")).toBe('{ "a": ');
    expect(install(broken, "emacs").err).toContain("claude-desktop");
  });

  test("asks first on a terminal, and changes nothing after a no", async () => {
    const home = homeOf("asked");
    const terminal = new Terminal(home as never, ["mcp", "install", "cursor"]);
    await terminal.until("Write it?");
    terminal.type("n\n");
    await terminal.end();
    expect(terminal.shown).toContain("Nothing was changed.");
    expect(existsSync(join(home.place, ".cursor"))).toBe(false);
  });
});
