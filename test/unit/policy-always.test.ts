/** What a person allowed always: that very action, in a project, and never against a denial. */
import { describe, expect, test } from "vitest";
import { agentText } from "../../src/base/policy/agents-text.ts";
import { alwaysRule, canonicalAction } from "../../src/base/policy/always.ts";
import { decide, effectivePolicy, type PolicyChoice } from "../../src/base/policy/policy.ts";
import { PolicyConfig, type PolicyAction } from "../../src/base/schema/policy.ts";

const line = (command: string | string[]): PolicyAction => ({ kind: "command", command });
const judged = (action: PolicyAction, choice: PolicyChoice = {}) =>
  decide(effectivePolicy({ project: "/home/me/app", level: 2, ...choice }), action);

describe("a rule that `always` adds", () => {
  test("POL-5: is the very action: its command, path, host or tool with what it works on", () => {
    expect(alwaysRule(line("git push origin main"))).toBe("bash: git push origin main");
    expect(alwaysRule(line("cd web && npm publish"))).toBe("bash: cd web && npm publish");
    expect(alwaysRule(line(["git", "commit", "-m", "two words"]))).toBe("bash: git commit -m 'two words'");
    expect(alwaysRule({ kind: "tool", tool: "Edit", argument: "package.json" })).toBe("edit: package.json");
    expect(alwaysRule({ kind: "tool", tool: "bash", argument: "git push" })).toBe("bash: git push");
    expect(alwaysRule({ kind: "path", path: "package.json", access: "write" })).toBe("write: package.json");
    expect(alwaysRule({ kind: "host", host: "API.example.com.", port: 443 })).toBe("host: api.example.com:443");
  });

  test("POL-5: is not to be had for what is known only when it runs, is not understood, or stands for many", () => {
    const wide = ["git push $REMOTE", "git push $(cat remote)", "curl https://$HOST/", "echo 'open", "rm *.log", "$PROGRAM x", "rm $FILE"];
    expect(wide.map((command) => alwaysRule(line(command)))).toEqual(wide.map(() => null));
    expect(alwaysRule({ kind: "tool", tool: "deploy" })).toBeNull();
    expect(alwaysRule({ kind: "host", host: "*.example.com" })).toBeNull();
    expect(alwaysRule({ kind: "path", path: "src/*", access: "write" })).toBeNull();
    expect(alwaysRule(line(`echo ${"x".repeat(2000)}`))).toBeNull();
  });

  test("POL-5: never opens a stage or resources for good", () => {
    for (const action of [
      { kind: "promotion", stage: "prod" },
      { kind: "resources", cpus: 64 },
    ] satisfies PolicyAction[]) {
      expect(alwaysRule(action)).toBeNull();
      expect(judged(action, { always: [action] }).verdict).toBe("ask");
    }
  });

  test("POL-5: lets this action through and no other", () => {
    const always = [line("git push origin main")];
    expect(judged(line("git push origin main"), { always })).toMatchObject({
      verdict: "allow",
      rule: "always: bash: git push origin main",
      parts: [{ verdict: "allow" }],
    });
    expect(judged({ kind: "tool", tool: "bash", argument: "git push origin main" }, { always }).verdict).toBe("allow");
    for (const other of ["git push origin main --force", "git push origin", "git push origin main; git push", "git  push origin main"])
      expect(judged(line(other), { always }).verdict).toBe("ask");
  });

  test("POL-5: lets no denial through: of a rule, a role, production or the walls", () => {
    const sudo = line("sudo ls");
    expect(judged(sudo).verdict).toBe("deny");
    expect(judged(sudo, { always: [sudo] }).verdict).toBe("deny");
    const both = line("git push && sudo ls");
    expect(judged(both, { always: [both] }).verdict).toBe("deny");
    const push = line("git push");
    expect(judged(push, { always: [push], role: "reviewer" }).verdict).toBe("deny");
    const config = { policy: PolicyConfig.parse({ bash: { "git push *": "deny" } }) };
    expect(judged(push, { always: [push], config }).verdict).toBe("deny");
    const live: PolicyAction = { kind: "host", host: "db.example.com" };
    expect(judged(live, { always: [live] }).verdict).toBe("allow");
    expect(judged(live, { always: [live], config: { network: { production: ["*.example.com"] } } }).verdict).toBe("deny");
    const metadata: PolicyAction = { kind: "host", host: "169.254.169.254" };
    expect(judged(metadata, { always: [metadata], level: undefined, yolo: 4 }).verdict).toBe("deny");
  });

  test("POL-5: tells actions apart that look alike", () => {
    expect(canonicalAction(line("a b"))).not.toBe(canonicalAction(line(["a", "b"])));
    expect(canonicalAction({ kind: "path", path: "a", access: "read" })).not.toBe(
      canonicalAction({ kind: "path", path: "a", access: "write" }),
    );
    expect(canonicalAction({ kind: "tool", tool: "edit", argument: "a" })).not.toBe(
      canonicalAction({ kind: "tool", tool: "write", argument: "a" }),
    );
  });

  test("POL-8: stands in the text for agents, with the stricter rules of a project that no person trusted yet", () => {
    const config = { policy: PolicyConfig.parse({ tightenOnly: true, bash: { "npm publish *": "deny", "make *": "ask" } }) };
    const text = agentText(effectivePolicy({ config, always: [line("git push origin main")] }));
    expect(text).toContain("## Allowed always by a person\n- `bash: git push origin main`");
    expect(text).toMatch(
      /## Stricter rules of this project\n.*\n### Actions requiring approval\n- Run: `make \*`\n### Actions that are denied\n- Run: `npm publish \*`/,
    );
  });
});
