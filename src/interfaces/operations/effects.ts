/** Use cases of the ledger of effects. */
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Store } from "../../base/store/store.ts";
import type { Handlers } from "./operations.ts";
import { subjectId } from "./subjects.ts";

export function effectHandlers(store: Store, sandboxes: Sandboxes): Pick<Handlers, "listEffects"> {
  return {
    listEffects: async ({ sandbox, limit }) => {
      const id = sandbox === undefined ? undefined : await subjectId(sandboxes, sandbox);
      return { effects: await store.effects.list({ sandbox: id }, { limit }) };
    },
  };
}
