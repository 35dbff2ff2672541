/** Makes the model gateway and the secrets it takes keys from. */
import { join } from "node:path";
import { Sealing } from "../secrets/sealing.ts";
import { Secrets } from "../secrets/secrets.ts";
import { Models, type ModelParts } from "./models.ts";

export async function openModels(parts: Omit<ModelParts, "secrets">, home: string): Promise<{ secrets: Secrets; models: Models }> {
  const secrets = await Secrets.open(parts.store, parts.audit, new Sealing(join(home, "secrets-key")));
  return { secrets, models: new Models({ ...parts, secrets }) };
}
