/** Use cases of the backlog: what agents left for later. */
import { VivError } from "../../base/schema/errors.ts";
import type { Store } from "../../base/store/store.ts";
import type { Handlers } from "./operations.ts";

const MOST_LISTED = 1_000;

export function backlogHandlers(store: Store): Pick<Handlers, "listBacklog" | "removeBacklogTask"> {
  return {
    listBacklog: async ({ project }) => ({ tasks: await store.backlog.list({ project }, { limit: MOST_LISTED }) }),
    removeBacklogTask: async ({ task }) => {
      await store.change(async (change) => {
        if ((await change.backlog.get(task)) === undefined)
          throw new VivError("not_found", `There is no task ${task} in the backlog.`, { remedy: "Look at `viv tasks`." });
        await change.backlog.remove(task);
      });
      return { ok: true };
    },
  };
}
