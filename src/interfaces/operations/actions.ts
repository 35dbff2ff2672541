/** Use cases of actions that are decided and enforced. */
import type { Actions } from "../../rules/actions/actions.ts";
import { shownPolicy } from "../../rules/actions/policy-of.ts";
import type { Approvals } from "../../rules/approvals/approvals.ts";
import type { Audit } from "../../rules/audit/audit.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Runs } from "../../work/agents/runs.ts";
import type { Handlers } from "./operations.ts";

type Own = "decideAction" | "inspectPolicy" | "setPolicy" | "listRules" | "forgetRule";

export interface ActionHandlerParts {
  readonly actions: Actions;
  readonly approvals: Approvals;
  readonly audit: Audit;
  readonly sandboxes: Sandboxes;
  readonly runs: Pick<Runs, "in">;
}

export function actionHandlers({ actions, approvals, audit, sandboxes, runs }: ActionHandlerParts): Pick<Handlers, Own> {
  return {
    decideAction: async ({ sandbox, ...input }, signal) => actions.decide(await sandboxes.find(sandbox), input, signal),
    inspectPolicy: async ({ sandbox }) => {
      const row = await sandboxes.find(sandbox);
      return shownPolicy(await actions.policy(row), runs.in(row.id)?.journal.row.mostSteps);
    },
    setPolicy: async ({ sandbox, approver, ...change }) => {
      approvals.requireApprover(approver);
      return sandboxes.setAutonomy(sandbox, change, audit);
    },
    listRules: async ({ project }) => ({
      rules: (await approvals.rules(project)).map(({ id, project: path, always, sandboxName, answeredAt, askedAt }) => ({
        id,
        project: path,
        rule: always ?? "",
        sandboxName,
        addedAt: answeredAt ?? askedAt,
      })),
    }),
    forgetRule: async ({ rule }) => {
      await approvals.forget(rule);
      return { ok: true };
    },
  };
}
