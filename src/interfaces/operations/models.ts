/** Use cases of model APIs. */
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Models } from "../../rules/models/models.ts";
import type { Store } from "../../base/store/store.ts";
import type { Handlers } from "./operations.ts";
import { subjectId } from "./subjects.ts";

export function modelHandlers(store: Store, sandboxes: Sandboxes, models: Pick<Models, "budgets">): Pick<Handlers, "usage"> {
  return {
    usage: async ({ sandbox, project, day }) => {
      const id = sandbox === undefined ? undefined : await subjectId(sandboxes, sandbox);
      const filter = { sandbox: id, project, day };
      return {
        usage: await store.usage.list(filter),
        microDollars: await store.usage.spent(filter),
        todayMicroDollars: await store.usage.spent({ day: new Date().toISOString().slice(0, 10) }),
        budgets: models.budgets,
      };
    },
  };
}
