/** The policy of one sandbox: reality's trusted config, what a person chose for it, and what people allowed always in its project. */
import type { Approvals } from "../approvals/approvals.ts";
import { loadProjectConfig } from "../../base/config/project-config.ts";
import { agentText } from "../../base/policy/agents-text.ts";
import { givenTo } from "../../base/policy/ceiling.ts";
import { effectivePolicy, type EffectivePolicy } from "../../base/policy/policy.ts";
import type { SandboxPolicy } from "../../base/schema/action.ts";
import { type Autonomy, DEFAULT_YOLO, NO_CHOICE, type PolicyConfig, type PolicyAction } from "../../base/schema/policy.ts";
import { redact } from "../../base/schema/secret-patterns.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

/** As it is now. What the clone holds is its agent's own work, and says nothing. */
export async function policyOf(store: Store, approvals: Approvals, row: SandboxRow): Promise<EffectivePolicy> {
  const trusted = (await store.projects.find({ path: row.project }))?.trusted ?? null;
  const { config } = loadProjectConfig(row.project, trusted);
  const production = [...new Set([...config.network.production, ...(row.network?.production ?? [])])];
  return effectivePolicy({
    ...chosen(row.autonomy ?? NO_CHOICE, config.policy ?? {}),
    config: { policy: config.policy, limits: config.limits, network: { production } },
    limits: givenTo(row),
    project: projectInside(row),
    always: await alwaysIn(approvals, row.project),
  });
}

export async function alwaysIn(approvals: Approvals, project: string): Promise<PolicyAction[]> {
  return (await approvals.rules(project)).flatMap(({ action }) => (action === undefined ? [] : [action]));
}

/** A person's choice for the sandbox, else the project's, else the default. */
function chosen({ level, yolo, role }: Autonomy, config: PolicyConfig): Parameters<typeof effectivePolicy>[0] {
  if (level !== null) return { role, level };
  if (yolo !== null) return { role, yolo };
  return config.level === undefined && config.yolo === undefined ? { role, yolo: DEFAULT_YOLO } : { role };
}

/** `steps` as the run in the sandbox has them, where there is one. */
export function shownPolicy(policy: EffectivePolicy, steps: number | null = policy.roleData.maxSteps): SandboxPolicy {
  const { title, level, yolo, role, roleData, rules, stricter, always, production, ceiling } = policy;
  return {
    title,
    autonomy: { level, yolo, role },
    tools: { ...roleData.tools },
    otherTools: roleData.others,
    maxSteps: steps,
    rules: { ...rules },
    stricter: { ...stricter },
    always: [...always.values()].map(redact),
    production: production.map(({ source }) => source),
    ceiling,
    text: agentText(policy, steps),
  };
}
