/** Use cases of model APIs. */
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { BudgetsConfig } from "../../base/schema/model.ts";
import type { Store } from "../../base/store/store.ts";
import type { Handlers } from "./operations.ts";

const SANDBOX_ID = /^sbx[0-9a-z]{26}$/;

export function modelHandlers(store: Store, sandboxes: Sandboxes, budgets: BudgetsConfig): Pick<Handlers, "usage"> {
  return {
    usage: async ({ sandbox, project, day }) => {
      // What a removed sandbox used is still there under its id.
      const id = sandbox === undefined || SANDBOX_ID.test(sandbox) ? sandbox : (await sandboxes.find(sandbox)).id;
      const filter = { sandbox: id, project, day };
      return {
        usage: await store.usage.list(filter),
        microDollars: await store.usage.spent(filter),
        todayMicroDollars: await store.usage.spent({ day: new Date().toISOString().slice(0, 10) }),
        budgets,
      };
    },
  };
}
