/** Use cases of the policy. */
import { parseJsonc } from "../../base/config/project-config.ts";
import { agentText } from "../../base/policy/agents-text.ts";
import { testExamples } from "../../base/policy/examples.ts";
import { importOpenCode } from "../../base/policy/opencode.ts";
import { decide, type EffectivePolicy, effectivePolicy } from "../../base/policy/policy.ts";
import { triage } from "../../base/policy/triage.ts";
import type { ProjectView } from "../../sandbox/projects/projects.ts";
import type { AutonomyLevel, PolicyAction, Role, YoloLevel } from "../../base/schema/policy.ts";
import type { Handlers } from "./operations.ts";

type Own = "explainPolicy" | "testPolicy" | "triageAction" | "agentInstructions" | "importPolicy";

interface PolicyScope {
  readonly sandbox?: string | undefined;
  readonly project?: string | undefined;
  readonly level?: AutonomyLevel | undefined;
  readonly yolo?: YoloLevel | undefined;
  readonly role?: Role | undefined;
}

export interface PolicySources {
  readonly open: (path: string) => Promise<ProjectView>;
  readonly ofSandbox: (reference: string) => Promise<EffectivePolicy>;
  /** What people allowed always in a project. */
  readonly always: (project: string) => Promise<PolicyAction[]>;
}

export function policyHandlers({ open, ofSandbox, always }: PolicySources): Pick<Handlers, Own> {
  const policyOf = async ({ project, sandbox, ...chosen }: PolicyScope): Promise<EffectivePolicy> => {
    if (sandbox !== undefined) return ofSandbox(sandbox);
    if (project === undefined) return effectivePolicy(chosen);
    const view = await open(project);
    const { path } = view.row;
    return effectivePolicy({ ...chosen, config: view.config, project: path, always: await always(path) });
  };
  return {
    explainPolicy: async ({ action, ...asked }) => decide(await policyOf(asked), action),
    testPolicy: async ({ project }) => testExamples((await open(project)).config.policy ?? {}),
    triageAction: async ({ action, ...asked }) => triage(await policyOf(asked), action),
    agentInstructions: async (asked) => ({ text: agentText(await policyOf(asked)) }),
    importPolicy: async ({ text }) => importOpenCode(parseJsonc("opencode.json", text)),
  };
}
