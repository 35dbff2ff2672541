import type { Sandboxes } from "../sandbox/sandboxes.ts";
import type { Handlers } from "./operations.ts";

export function networkHandlers(sandboxes: Sandboxes): Pick<Handlers, "inspectNetwork" | "changeNetwork"> {
  return {
    inspectNetwork: async ({ sandbox }) => sandboxes.networks.report(await sandboxes.find(sandbox)),
    changeNetwork: ({ sandbox, ...change }) => sandboxes.changeNetwork(sandbox, change),
  };
}
