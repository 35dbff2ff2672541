/** Use cases of secrets. */
import { findProject } from "../../machine/capture/project.ts";
import type { Secret } from "../../base/schema/secret.ts";
import { importLogins } from "../../rules/secrets/importing.ts";
import type { Secrets } from "../../rules/secrets/secrets.ts";
import type { Handlers } from "./operations.ts";

type Own = "setSecret" | "importSecrets" | "listSecrets" | "removeSecret";

/** `changed` is told when files of new sandboxes look different from now on. */
export function secretHandlers(secrets: Secrets, stateFolder: string, changed: () => Promise<void>): Pick<Handlers, Own> {
  const folders = (given: Secret["projects"] | undefined): Secret["projects"] | undefined =>
    given === undefined || given === null ? given : [...new Set(given.map((path) => findProject(path, stateFolder)))];
  return {
    setSecret: async ({ secret, value, projects, ...binding }) => secrets.set(secret, value, binding, folders(projects)),
    importSecrets: async ({ files, projects, dryRun }) => {
      const logins = await importLogins(secrets, files, { dryRun, projects: folders(projects) });
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
