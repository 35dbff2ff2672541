/** Other agents that an agent may ask, as options name them. */
import { COMPANION_ROLES } from "../../base/schema/choices.ts";
import type { Companion } from "../../base/schema/run.ts";
import { usageError } from "./values.ts";

export const WITH_SUMMARY = "Who its agent may ask: reviewer, or reviewer:AGENT[:MODEL]; the same agent if left out";

export function companions(given: readonly string[]): { with?: Companion[] } {
  return given.length === 0 ? {} : { with: given.map(companion) };
}

function companion(text: string): Companion {
  const [name = "", agent, ...model] = text.split(":");
  const role = COMPANION_ROLES.find((each) => each === name);
  if (role === undefined || agent === "" || (model.length > 0 && model.join(":") === ""))
    throw usageError(`--with takes ${COMPANION_ROLES.join(", ")}, perhaps with :AGENT:MODEL, not ${JSON.stringify(text)}.`);
  return { role, ...(agent === undefined ? {} : { agent }), ...(model.length === 0 ? {} : { model: model.join(":") }) };
}
