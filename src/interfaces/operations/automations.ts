/** Use cases of automations. */
import type { Automations } from "../../work/automation/automations.ts";
import type { Handlers } from "./operations.ts";

type Own =
  | "addAutomation"
  | "listAutomations"
  | "inspectAutomation"
  | "automationSecret"
  | "runAutomation"
  | "testAutomation"
  | "pauseAutomation"
  | "resumeAutomation"
  | "removeAutomation"
  | "listFirings"
  | "inspectFiring"
  | "reportFirings";

export function automationHandlers(automations: Automations): Pick<Handlers, Own> {
  return {
    addAutomation: (input) => automations.add(input),
    listAutomations: async ({ project }) => ({ automations: await automations.list(project) }),
    inspectAutomation: ({ automation, project }) => automations.inspect(automation, project),
    automationSecret: ({ automation, project, renew }) => automations.secret(automation, project, renew),
    runAutomation: ({ automation, project }) => automations.run(automation, project),
    testAutomation: ({ automation, project }) => automations.test(automation, project),
    pauseAutomation: ({ automation, project, reason }) => automations.pause(automation, project, reason),
    resumeAutomation: ({ automation, project }) => automations.resumeOne(automation, project),
    removeAutomation: async ({ automation, project }) => {
      await automations.remove(automation, project);
      return { ok: true };
    },
    listFirings: async (filter) => ({ firings: await automations.history(filter) }),
    inspectFiring: ({ firing }) => automations.firing(firing),
    reportFirings: ({ since, project }) => automations.report(new Date(since), project),
  };
}
