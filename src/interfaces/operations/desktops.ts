/** Desktops of sandboxes. */
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Handlers, Streams } from "./operations.ts";

const OK = { ok: true } as const;

export function desktopHandlers(
  sandboxes: Sandboxes,
): Pick<Handlers, "openDesktop" | "inspectDesktop" | "closeDesktop" | "useDesktop" | "listWindows"> {
  const { desktops } = sandboxes;
  return {
    openDesktop: async ({ sandbox, ...how }) => desktops.open(await sandboxes.find(sandbox), how),
    inspectDesktop: async ({ sandbox }) => desktops.inspect(await sandboxes.find(sandbox)),
    closeDesktop: async ({ sandbox }) => (await desktops.close(await sandboxes.find(sandbox)), OK),
    useDesktop: async ({ sandbox, actions }, signal) => desktops.use(await sandboxes.find(sandbox), actions, signal),
    listWindows: async ({ sandbox }) => desktops.windows(await sandboxes.find(sandbox)),
  };
}

export function desktopStreams(sandboxes: Sandboxes): Pick<Streams, "screenshot" | "desktop"> {
  const { desktops } = sandboxes;
  return {
    screenshot: async (sandbox) => desktops.screenshot(await sandboxes.find(sandbox)),
    desktop: async (sandbox, control, tell) => desktops.view(await sandboxes.find(sandbox), control, tell),
  };
}
