/** Actions of agents as the audit trail keeps them. */
import { createHash } from "node:crypto";
import type { AuditEntry, AuditLabel } from "../../base/schema/audit.ts";
import type { PolicyAction, PolicyDecision } from "../../base/schema/policy.ts";
import { canonicalAction, shownAction } from "../../base/policy/always.ts";
import { redact } from "../../base/schema/secret-patterns.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

/** Parts that are kept with a record; the others follow from the target. */
const MOST_PARTS = 16;

export function actionEntry(
  row: SandboxRow,
  action: PolicyAction,
  { verdict, rule, reason, parts }: PolicyDecision,
  more: { readonly label?: AuditLabel; readonly approval?: string } = {},
): AuditEntry {
  const { approval } = more;
  return {
    actor: { kind: "agent", name: row.name },
    action: nameOf(action),
    target: action.kind === "tool" ? shownArgument(row, action) : shownAction(action),
    arguments: {
      verdict,
      hash: createHash("sha256").update(canonicalAction(action)).digest("hex"),
      ...(approval === undefined ? {} : { approval }),
      parts: parts.slice(0, MOST_PARTS).map((part) => ({
        // Cut afterwards: half a secret does not look like one.
        command: redact(part.command).slice(0, 256),
        verdict: part.verdict,
        rule: redact(part.rule).slice(0, 256),
      })),
    },
    label: more.label ?? labelOf(verdict, rule),
    rule: redact(rule).slice(0, 1024),
    reason,
    sandbox: row.id,
    snapshot: row.currentSnapshot,
  };
}

/** A file of the project is named as it is called there. */
function shownArgument(row: SandboxRow, { tool, argument = "" }: Extract<PolicyAction, { kind: "tool" }>): string {
  const project = `${projectInside(row)}/`;
  return tool !== "bash" && argument.startsWith(project) ? argument.slice(project.length) : argument;
}

/** As agents call their tools. */
function nameOf(action: PolicyAction): string {
  switch (action.kind) {
    case "command":
      return "bash";
    case "tool":
      return action.tool.toLowerCase().slice(0, 128);
    case "path":
      return `path.${action.access}`;
    default:
      return action.kind;
  }
}

/** A rule that names what it allows is a white list; one for everything is none. */
function labelOf(verdict: PolicyDecision["verdict"], rule: string): AuditLabel {
  if (verdict === "deny") return "DENIED";
  if (verdict === "ask") return "RECORDED";
  return /: (?!\*$)/.test(rule) ? "AUTONOMOUS (whitelisted)" : "AUTONOMOUS";
}
