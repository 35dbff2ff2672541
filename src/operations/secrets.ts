/** Use cases of secrets. */
import { importLogins } from "../secrets/importing.ts";
import type { Secrets } from "../secrets/secrets.ts";
import type { Handlers } from "./operations.ts";

type Own = "setSecret" | "importSecrets" | "listSecrets" | "removeSecret";

/** `changed` is told when files of new sandboxes look different from now on. */
export function secretHandlers(secrets: Secrets, changed: () => Promise<void>): Pick<Handlers, Own> {
  return {
    setSecret: ({ secret, value, ...binding }) => secrets.set(secret, value, binding),
    importSecrets: async ({ files, dryRun }) => {
      const logins = await importLogins(secrets, files, dryRun);
      if (logins.some(({ state }) => state === "new")) await changed();
      return { logins };
    },
    listSecrets: async () => ({ secrets: secrets.list() }),
    removeSecret: async ({ secret }) => {
      await secrets.remove(secret);
      return { ok: true };
    },
  };
}
