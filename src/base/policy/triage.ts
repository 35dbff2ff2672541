/** Is work that no person watches safe enough to do at once, worth a sandbox, or only to be proposed? */
import type { PolicyAction, Triage } from "../schema/policy.ts";
import { partsOf } from "./parts.ts";
import { READING, GIT_READING } from "./lists.ts";
import { decide, type EffectivePolicy } from "./policy.ts";
import { compile, matches } from "./pattern.ts";

const LOOKING = [...READING, ...GIT_READING].map(compile);
/** A clone and a snapshot before anything runs, and the memory of an idle sandbox. */
const SANDBOX = { seconds: 0.3, memoryMib: 2, diskMib: 1 };
/** Programs whose work in a sandbox costs more, about. */
const COSTS: readonly (readonly [pattern: string, seconds: number, memoryMib: number, diskMib: number])[] = [
  ["*install*", 30, 300, 300],
  ["*build*", 60, 800, 200],
  ["*test*", 60, 500, 50],
  ["cargo *", 90, 1000, 500],
  ["make *", 60, 500, 100],
  ["git clone *", 20, 100, 200],
];
const COST_PATTERNS = COSTS.map(([pattern, ...cost]) => ({ pattern: compile(pattern), cost }));

export function triage(policy: EffectivePolicy, action: PolicyAction): Triage {
  const decision = decide(policy, action);
  const cost = costOf(action);
  if (decision.verdict === "deny")
    return { way: "propose", reasons: [decision.reason, "The policy denies it, so a person has to do it."], cost, decision };
  if (action.kind === "promotion") return { way: "propose", reasons: [decision.reason, "A promotion changes reality."], cost, decision };
  if (onlyLooks(action)) return { way: "direct", reasons: ["It only looks, so there is nothing to undo."], cost, decision };
  if (reachesOut(action)) {
    const reason = "It sends something out, which no rollback takes back.";
    return { way: "propose", reasons: [reason, decision.reason], cost, decision };
  }
  const known = decision.verdict === "allow" ? "It changes something, and a sandbox costs little." : decision.reason;
  return { way: "sandbox", reasons: [known, "A sandbox can be thrown away; only what works is promoted."], cost, decision };
}

function onlyLooks(action: PolicyAction): boolean {
  if (action.kind === "path") return action.access === "read";
  if (action.kind === "tool") return ["read", "grep", "glob", "list", "ls"].includes(action.tool);
  if (action.kind !== "command" || typeof action.command !== "string") return false;
  const parts = partsOf(action.command);
  return (
    parts.length > 0 &&
    parts.every(
      (part) =>
        part.kind === "command" &&
        part.opaque === undefined &&
        part.effects.length === 0 &&
        LOOKING.some((pattern) => matches(pattern, part.text)),
    )
  );
}

const SENDING = [
  "git push *",
  "npm publish *",
  "curl *-X *",
  "curl *--data*",
  "curl *-d *",
  "gh *",
  "ssh *",
  "scp *",
  "twine *",
  "cargo publish *",
].map(compile);

function reachesOut(action: PolicyAction): boolean {
  if (action.kind !== "command" || typeof action.command !== "string") return false;
  return partsOf(action.command).some(
    (part) => part.kind === "command" && [part.text, ...part.otherTexts].some((text) => SENDING.some((pattern) => matches(pattern, text))),
  );
}

function costOf(action: PolicyAction): Triage["cost"] {
  const texts =
    action.kind === "command" && typeof action.command === "string"
      ? partsOf(action.command).flatMap((part) => (part.kind === "command" ? [part.text] : []))
      : [];
  let { seconds, memoryMib, diskMib } = SANDBOX;
  for (const text of texts) {
    const found = COST_PATTERNS.find(({ pattern }) => matches(pattern, text))?.cost;
    seconds += found?.[0] ?? 1;
    memoryMib = Math.max(memoryMib, found?.[1] ?? 20);
    diskMib += found?.[2] ?? 1;
  }
  return { seconds: Math.round(seconds * 10) / 10, memoryMib, diskMib };
}
