import { describe, expect, test } from "vitest";
import { agentText } from "../../src/base/policy/agents-text.ts";
import { testExamples } from "../../src/base/policy/examples.ts";
import { LEVELS } from "../../src/base/policy/levels.ts";
import { importOpenCode } from "../../src/base/policy/opencode.ts";
import { decide, effectivePolicy, type PolicyChoice } from "../../src/base/policy/policy.ts";
import { triage } from "../../src/base/policy/triage.ts";
import { PolicyConfig, type PolicyAction, type Verdict } from "../../src/base/schema/policy.ts";

const project = "/home/me/app";

function verdict(command: string, choice: PolicyChoice = {}): Verdict {
  return decide(effectivePolicy({ project, ...choice }), { kind: "command", command }).verdict;
}

function judged(action: PolicyAction, choice: PolicyChoice = {}): Verdict {
  return decide(effectivePolicy({ project, ...choice }), action).verdict;
}

const trusted = (policy: unknown): PolicyChoice => ({ config: { policy: PolicyConfig.parse(policy) } });

/** The example that level 1 equals without a config. */
const EXAMPLE = {
  edit: "allow",
  bash: {
    "npm *": "allow",
    "pnpm *": "allow",
    "git status": "allow",
    "git diff": "allow",
    "git add *": "allow",
    "git commit *": "allow",
    "rm -rf *": "deny",
    "sudo *": "deny",
    "*": "ask",
  },
  write: "allow",
  external_directory: "deny",
};

describe("rules", () => {
  test("POL-1: level 1 without a config is the example set", () => {
    expect(LEVELS[1].rules).toMatchObject(EXAMPLE);
    expect(LEVELS[1].rules["bash"]).toEqual(EXAMPLE.bash);
    expect(LEVELS[1].rules["package"]).toBeUndefined();
    expect(LEVELS[1].rules["delete"]).toBeUndefined();
  });

  test("POL-1: the most specific pattern wins, whatever the order", () => {
    const rules = { "git *": "allow", "git push *": "deny", "git push origin *": "ask", "*": "ask" } as const;
    const turned = Object.fromEntries(Object.entries(rules).toReversed());
    for (const bash of [rules, turned]) {
      expect(verdict("git log", trusted({ bash }))).toBe("allow");
      expect(verdict("git push upstream x", trusted({ bash }))).toBe("deny");
      expect(verdict("git push origin x", trusted({ bash }))).toBe("ask");
    }
  });

  test("POL-1: letters before the first star count first, then all letters, then the stricter verdict", () => {
    expect(verdict("tool run x y", trusted({ bash: { "tool r*": "deny", "tool *n x y": "allow" } }))).toBe("deny");
    expect(verdict("tool run x y", trusted({ bash: { "tool *": "deny", "tool *y": "allow" } }))).toBe("allow");
    expect(verdict("tool ab", trusted({ bash: { "tool a*b": "allow", "tool ab*": "deny" } }))).toBe("deny");
    expect(verdict("tool xab", trusted({ bash: { "tool *ab": "allow", "tool *b*": "deny" } }))).toBe("allow");
    expect(verdict("tool aba", trusted({ bash: { "tool *a": "allow", "tool *b*": "deny" } }))).toBe("deny");
  });

  test("POL-1: a pattern without a star matches only that command", () => {
    expect(verdict("git status")).toBe("allow");
    expect(verdict("git status -s")).toBe("ask");
    expect(verdict("git statusx")).toBe("ask");
  });

  test("POL-1: a tool, a path and a host have rules like commands", () => {
    const choice = trusted({
      path: { "secrets/*": "deny" },
      host: { "*.example.com": "deny", "api.example.com": "allow" },
      webfetch: "deny",
    });
    expect(judged({ kind: "tool", tool: "edit", argument: "src/a.ts" }, choice)).toBe("allow");
    expect(judged({ kind: "tool", tool: "edit", argument: "secrets/key" }, choice)).toBe("deny");
    expect(judged({ kind: "tool", tool: "read", argument: "secrets/key" }, choice)).toBe("deny");
    expect(verdict("npm test > secrets/key", choice)).toBe("deny");
    expect(judged({ kind: "host", host: "x.example.com" }, choice)).toBe("deny");
    expect(judged({ kind: "host", host: "API.example.com." }, choice)).toBe("allow");
    expect(judged({ kind: "tool", tool: "webfetch", argument: "https://example.org" }, choice)).toBe("deny");
    expect(judged({ kind: "tool", tool: "some_mcp_tool" }, choice)).toBe("ask");
    expect(judged({ kind: "tool", tool: "mcp_send" }, trusted({ "mcp_*": "deny", "*": "allow" }))).toBe("deny");
    expect(judged({ kind: "tool", tool: "other" }, trusted({ "mcp_*": "deny", "*": "allow" }))).toBe("allow");
    expect(judged({ kind: "tool", tool: "patch", argument: "a" }, trusted({ patch: "deny" }))).toBe("deny");
    expect(
      judged({ kind: "tool", tool: "edit", argument: "/home/me/app/src/a" }, trusted({ edit: { "*": "ask", "src/*": "allow" } })),
    ).toBe("allow");
    expect(judged({ kind: "tool", tool: "edit", argument: "src/../package.json" }, { level: 2 })).toBe("ask");
  });

  test("POL-2: every part is shown with its verdict, rule and reason", () => {
    const { verdict: whole, parts } = decide(effectivePolicy({}), { kind: "command", command: "npm test && rm -rf /" });
    expect(whole).toBe("deny");
    expect(parts).toEqual([
      { command: "npm test", verdict: "allow", rule: "bash: npm *", reason: "Level 1 (guided) allows `npm *`." },
      { command: "rm -rf /", verdict: "deny", rule: "bash: rm -rf *", reason: "Level 1 (guided) denies `rm -rf *`." },
    ]);
  });

  test("POL-2: words without a shell are judged as they are", () => {
    expect(judged({ kind: "command", command: ["npm", "run", "a; rm -rf x"] })).toBe("allow");
    expect(judged({ kind: "command", command: ["sh", "-c", "rm -rf x"] })).toBe("deny");
  });
});

describe("levels and roles", () => {
  test("POL-3, POL-4: a level is chosen for each decision, and two kinds exclude each other", () => {
    expect([1, 2, 3].map((level) => verdict("cargo test", { level: level as 1 }))).toEqual(["ask", "allow", "allow"]);
    expect([1, 2, 3, 4].map((yolo) => verdict("sudo ls", { yolo: yolo as 1 }))).toEqual(["deny", "deny", "deny", "allow"]);
    expect([1, 2, 3, 4].map((yolo) => verdict("curl https://example.com", { yolo: yolo as 1 }))).toEqual([
      "ask",
      "allow",
      "allow",
      "allow",
    ]);
    expect(() => effectivePolicy({ level: 1, yolo: 1 })).toThrow("exclude");
  });

  test("POL-4: at yolo 4 walls, production and promotion stay closed", () => {
    const choice: PolicyChoice = { yolo: 4, config: { network: { production: ["*.prod.example.com"] } } };
    expect(verdict("rm -rf /", choice)).toBe("allow");
    expect(verdict("curl https://db.prod.example.com/", choice)).toBe("deny");
    expect(verdict("curl https://$HOST/", choice)).toBe("ask");
    expect(judged({ kind: "host", host: "db.PROD.example.com" }, choice)).toBe("deny");
    expect(judged({ kind: "host", host: "169.254.169.254" }, choice)).toBe("deny");
    expect(judged({ kind: "promotion", stage: "folder" }, choice)).toBe("ask");
  });

  test("POL-6: the lists of commands and packages are the data of level 3", () => {
    expect(verdict("pip install pandas numpy", { level: 3 })).toBe("allow");
    expect(verdict("pip install pandas unknown-package", { level: 3 })).toBe("ask");
    expect(["docker", "sudo", "ssh", "nc", "systemctl"].map((name) => verdict(`${name} x`, { level: 3 }))).toEqual(Array(5).fill("deny"));
    expect(["python", "node", "npm", "curl", "git", "jq"].map((name) => verdict(`${name} x`, { level: 3 }))).toEqual(
      Array(6).fill("allow"),
    );
  });

  test("POL-7: a reviewer reads and a coordinator coordinates, at every level", () => {
    for (const yolo of [1, 4] as const) {
      expect(verdict("ls", { yolo, role: "reviewer" })).toBe("deny");
      expect(judged({ kind: "tool", tool: "read", argument: "a" }, { yolo, role: "reviewer" })).toBe("allow");
      expect(judged({ kind: "tool", tool: "edit", argument: "a" }, { yolo, role: "reviewer" })).toBe("deny");
      expect(judged({ kind: "path", path: "a", access: "write" }, { yolo, role: "reviewer" })).toBe("deny");
      expect(judged({ kind: "tool", tool: "coordinate_sibling" }, { yolo, role: "coordinator" })).toBe("allow");
      expect(judged({ kind: "tool", tool: "bash", argument: "ls" }, { yolo, role: "coordinator" })).toBe("deny");
    }
  });

  test("POL-7: a role has as many steps as a config says; a project that is not trusted only takes some away", () => {
    const roles = { worker: { maxSteps: 5 } };
    const most = (policy: unknown): number | null => effectivePolicy(trusted(policy)).roleData.maxSteps;
    expect([most({}), most({ roles }), most({ roles, tightenOnly: true })]).toEqual([null, 5, 5]);
    const given = effectivePolicy(trusted({ roles }));
    expect(agentText(effectivePolicy({}))).not.toContain("steps");
    expect(agentText(given)).toContain("You have 5 steps");
    // What a run may take goes before what its role says.
    expect(agentText(given, 9)).toContain("You have 9 steps");
    expect(agentText(given, null)).not.toContain("steps");
  });

  test("POL-10: level 1 writes in the project alone, level 2 asks for configuration, deletions, pushes and calls", () => {
    expect(judged({ kind: "path", path: "src/a.ts", access: "write" }, { level: 1 })).toBe("allow");
    expect(judged({ kind: "path", path: "/etc/hosts", access: "write" }, { level: 1 })).toBe("deny");
    expect(judged({ kind: "path", path: "../other/x", access: "write" }, { level: 1 })).toBe("deny");
    const at2 = (action: PolicyAction): Verdict => judged(action, { level: 2 });
    expect(at2({ kind: "path", path: "src/a.ts", access: "write" })).toBe("allow");
    expect(at2({ kind: "path", path: "package.json", access: "write" })).toBe("ask");
    expect(at2({ kind: "path", path: "package.json", access: "read" })).toBe("allow");
    expect(at2({ kind: "path", path: "src/a.ts", access: "delete" })).toBe("ask");
    expect(["git push", "curl https://api.example.com"].map((line) => verdict(line, { level: 2 }))).toEqual(["ask", "ask"]);
  });

  test("LIM-2, LIM-5: what fits under the ceiling is granted, what does not is asked", () => {
    const gib = 1024 ** 3;
    expect(judged({ kind: "resources", cpus: 4, memoryBytes: 8 * gib })).toBe("allow");
    expect(judged({ kind: "resources", cpus: 5 })).toBe("ask");
    expect(judged({ kind: "resources", memoryBytes: 9 * gib })).toBe("ask");
    expect(judged({ kind: "resources", cpus: 8 }, trusted({ ceiling: { cpus: 8 } }))).toBe("allow");
  });
});

describe("a project's rules", () => {
  test("AP-16: replace those of the level where they are trusted, and else only tighten", () => {
    const policy = PolicyConfig.parse({ bash: { "*": "allow", "npm *": "ask", "rm -rf *": "allow" }, edit: { "docs/*": "deny" } });
    const free: PolicyChoice = { config: { policy } };
    const tight: PolicyChoice = { config: { policy: { ...policy, tightenOnly: true } as PolicyConfig } };
    expect(["ls", "npm test", "rm -rf x", "sudo ls"].map((line) => verdict(line, free))).toEqual(["allow", "ask", "allow", "deny"]);
    expect(["ls", "npm test", "rm -rf x", "git status"].map((line) => verdict(line, tight))).toEqual(["ask", "ask", "deny", "allow"]);
    expect(judged({ kind: "path", path: "docs/a.md", access: "write" }, tight)).toBe("deny");
  });

  test("run the examples beside them", () => {
    const bash = { "npm *": "allow", "git status": "allow" } as const;
    const examples = {
      bash: { "npm *": { match: ["npm test", "cd x && npm ci"], not_match: ["npx y"] }, "git status": { match: ["git status -s"] } },
    };
    const report = testExamples(PolicyConfig.parse({ bash, examples }));
    expect(report.passed).toBe(3);
    expect(report.failures).toEqual([
      { rule: "bash: git status", example: "git status -s", expected: "match", reason: "The rule does not match it." },
    ]);
    const missing = testExamples(PolicyConfig.parse({ bash, examples: { bash: { "yarn *": { match: ["yarn"] } } } }));
    expect(missing.failures).toHaveLength(1);
  });

  test("are imported from OpenCode, with a warning where its order means something else", () => {
    const { policy, warnings } = importOpenCode({ permission: { edit: "ask", bash: { "*": "ask", "git *": "allow" }, webfetch: 7 } });
    expect(policy).toEqual({ edit: "ask", bash: { "*": "ask", "git *": "allow" } });
    expect(warnings).toEqual(["webfetch is left out: it has neither a verdict nor patterns with verdicts."]);
    const turned = importOpenCode({ permission: { bash: { "git push *": "deny", "git *": "allow" } } });
    expect(turned.warnings).toHaveLength(1);
    expect(turned.warnings[0]).toContain("is allow in OpenCode");
    expect(importOpenCode({ permission: EXAMPLE }).policy).toEqual(EXAMPLE);
    expect(() => importOpenCode({})).toThrow("no permission block");
  });
});

describe("what agents are told", () => {
  test("POL-8: is what is enforced, for each rule of commands", () => {
    // An interpreter or shell without a script reads code, which is asked about.
    const reading = /^(python|node|ruby|perl|php|lua|bash|sh|deno|Rscript|julia|env)/;
    const wrong = ([1, 2, 3] as const).flatMap((level) => {
      const [, allowed = "", , denied = ""] = agentText(effectivePolicy({ level, project })).split("\n## ");
      return (["allow", "deny"] as const).flatMap((told) => {
        const line = /^- Run: (.*)$/m.exec(told === "allow" ? allowed : denied)?.[1] ?? "";
        const names = [...line.matchAll(/`([^`]+) \*`/g)].map(([, name = ""]) => name).filter((name) => !reading.test(name));
        expect(names.length).toBeGreaterThan(1);
        return names.filter((name) => verdict(name, { level }) !== told).map((name) => `${name} is not ${told} at level ${level}`);
      });
    });
    expect(wrong).toEqual([]);
    expect(agentText(effectivePolicy({ role: "reviewer" }))).toContain("Use `write`, `edit`, `bash`");
    expect(agentText(effectivePolicy({}))).toContain("`rm -rf *`, `sudo *`");
  });

  test("POL-9: looking is done directly, changes get a sandbox, what goes out or is denied is proposed", () => {
    const way = (command: string): string => triage(effectivePolicy({ level: 3, project }), { kind: "command", command }).way;
    expect(way("git log | head")).toBe("direct");
    expect(way("npm install typescript && npm test")).toBe("sandbox");
    expect(way("git push origin main")).toBe("propose");
    expect(way("sudo reboot")).toBe("propose");
    const found = triage(effectivePolicy({ level: 3 }), { kind: "command", command: "npm test" });
    expect(found.cost.seconds).toBeGreaterThan(1);
    expect(found.reasons.length).toBeGreaterThan(0);
  });
});
