/** What is to be done about a firing, and why. Pure. */
import type { Authority, AutomationSpec, FiringTriage } from "../../base/schema/automation.ts";
import type { EffectivePolicy } from "../../base/policy/policy.ts";
import { triage } from "../../base/policy/triage.ts";
import { mayPromote } from "./authority.ts";

export interface TriageInput {
  readonly spec: AutomationSpec;
  /** What it may do, within the user's config. */
  readonly authority: Authority;
  readonly policy: EffectivePolicy;
  /** What verifies its change. */
  readonly checks: readonly string[];
}

export function triageFiring({ spec, authority, policy, checks }: TriageInput): FiringTriage {
  if (authority === "alert-only") return { way: "alert", reason: "Its authority is to alert only." };
  const lines = (spec.run ?? []).map((command) => triage(policy, { kind: "command", command }));
  if (lines.length > 0 && lines.every(({ way }) => way === "direct"))
    return { way: "direct", reason: "Its lines only look, so there is nothing to undo." };
  const outside = lines.find(({ way }) => way === "propose");
  if (outside !== undefined) return { way: "propose", reason: outside.reasons[0] ?? "A person has to decide about it." };
  if (!mayPromote(authority)) return { way: "propose", reason: "It is tried in a sandbox, and its authority is to propose." };
  if (checks.length === 0) return { way: "propose", reason: "It is tried in a sandbox, and no check verifies what comes of it." };
  return { way: "sandbox", reason: "It changes something: it is tried in a sandbox, and promoted if its checks pass." };
}
