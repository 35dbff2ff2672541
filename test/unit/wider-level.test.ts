/** POL-4: whether a yolo level is wider than a level in force, compared with what the engine itself allows at each. */
import { describe, expect, test } from "vitest";
import * as lists from "../../src/base/policy/lists.ts";
import { decide, effectivePolicy, type PolicyChoice } from "../../src/base/policy/policy.ts";
import { isWider, type AutonomyLevel, type PolicyAction, type YoloLevel } from "../../src/base/schema/policy.ts";

const YOLOS: readonly YoloLevel[] = [1, 2, 3, 4];
const commands = [lists.READING, lists.FILES, lists.DELETING, lists.BUILDING, lists.INTERPRETERS, lists.CALLING, lists.BLOCKED]
  .concat([lists.GIT_READING, lists.GIT_WORKING, lists.GIT_SENDING, lists.GIT_RISKY, lists.PUBLISHING, lists.DEPENDENCIES, lists.INSTALLS])
  .flat()
  .concat(["git clone x", "git fetch", "git pull", "some-program", "pip install odd"])
  .map((pattern): PolicyAction => ({ kind: "command", command: pattern.replaceAll("*", "x") }));
const others: readonly PolicyAction[] = [
  { kind: "tool", tool: "edit", argument: "package.json" },
  { kind: "tool", tool: "webfetch", argument: "https://example.com" },
  { kind: "tool", tool: "something" },
  { kind: "path", path: "/etc/hosts", access: "write" },
  { kind: "path", path: "a", access: "delete" },
  { kind: "host", host: "example.com" },
  { kind: "host", host: "localhost" },
];

/** Whether the first allows something that the second does not. */
function allowsMore(one: PolicyChoice, other: PolicyChoice): boolean {
  const [first, second] = [one, other].map((choice) => effectivePolicy({ project: "/p", ...choice }));
  if (first === undefined || second === undefined) throw new Error("two policies are compared");
  return [...commands, ...others].some((action) => decide(first, action).verdict === "allow" && decide(second, action).verdict !== "allow");
}

describe("a yolo level", () => {
  test.for<AutonomyLevel>([1, 2, 3])("POL-4: is wider than level %i where it allows what that asks about or denies", (level) => {
    for (const yolo of YOLOS) expect(isWider(yolo, { level, yolo: null }), `yolo ${yolo}`).toBe(allowsMore({ yolo }, { level }));
  });

  test("POL-4: is wider than a smaller one, and than yolo 3 where none was chosen", () => {
    for (const yolo of YOLOS) {
      for (const now of YOLOS) expect(isWider(yolo, { level: null, yolo: now })).toBe(allowsMore({ yolo }, { yolo: now }));
      expect(isWider(yolo, { level: null, yolo: null })).toBe(yolo > 3);
    }
  });
});
