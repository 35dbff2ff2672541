/** Use cases of the ledger of effects. */
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Store } from "../../base/store/store.ts";
import type { Handlers } from "./operations.ts";

const SANDBOX_ID = /^sbx[0-9a-z]{26}$/;

export function effectHandlers(store: Store, sandboxes: Sandboxes): Pick<Handlers, "listEffects"> {
  return {
    listEffects: async ({ sandbox, limit }) => {
      // Entries of a removed sandbox are still there under its id.
      const id = sandbox === undefined || SANDBOX_ID.test(sandbox) ? sandbox : (await sandboxes.find(sandbox)).id;
      return { effects: await store.effects.list({ sandbox: id }, { limit }) };
    },
  };
}
