/** Use cases of secrets. */
import type { Secrets } from "../secrets/secrets.ts";
import type { Handlers } from "./operations.ts";

type Own = "setSecret" | "listSecrets" | "removeSecret";

export function secretHandlers(secrets: Secrets): Pick<Handlers, Own> {
  return {
    setSecret: ({ secret, value, ...binding }) => secrets.set(secret, value, binding),
    listSecrets: async () => ({ secrets: secrets.list() }),
    removeSecret: async ({ secret }) => {
      await secrets.remove(secret);
      return { ok: true };
    },
  };
}
