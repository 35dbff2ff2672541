/** Makes the model gateway and the secrets it takes keys from. */
import { join } from "node:path";
import type { Approvals } from "../approvals/approvals.ts";
import { SecretInterceptor } from "../secrets/interceptor.ts";
import { SealingKey } from "../secrets/sealing-key.ts";
import { Secrets } from "../secrets/secrets.ts";
import { Models, type ModelParts } from "./models.ts";

export async function openModels(
  parts: Omit<ModelParts, "secrets" | "interceptor"> & {
    readonly approvals: Approvals;
    /** Secrets that another part of the server uses alone, besides the logins of models. */
    readonly isReserved: (secret: string) => boolean;
  },
  home: string,
): Promise<{ secrets: Secrets; models: Models }> {
  const { settings } = parts;
  const secrets = await Secrets.open(parts.store, parts.audit, new SealingKey(join(home, "secrets-key")), {
    reserved: { has: (secret) => settings.isLogin(secret) || parts.isReserved(secret) },
    approvals: parts.approvals,
  });
  return { secrets, models: new Models({ ...parts, secrets, interceptor: new SecretInterceptor(secrets, home) }) };
}
