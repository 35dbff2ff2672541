/** Requests that can change something outside: each has an entry, written before it is sent and completed by its answer. */
import { z } from "zod";
import { contract, count } from "./contract.ts";
import { SandboxRef } from "./ids.ts";
import { ROUTES } from "./routes.ts";

export const Effect = z
  .object({
    id: z.string().describe("Id of the entry."),
    at: z.string().describe("ISO time at which it was asked for."),
    sandbox: z.string().describe("Id of the sandbox."),
    method: z.string(),
    url: z.string().describe("Where it goes."),
    bodyBytes: z.number().int().nullable().describe("Length of what was sent, where it was held."),
    bodyHash: z.string().nullable().describe("SHA-256 of what was sent, where it was held."),
    state: z
      .enum(["sent", "answered", "broken", "held", "denied"])
      .describe("sent has no answer yet, or none that is known; held waits for a person, or was given up while it did."),
    approval: z.string().nullable().describe("Id of the question, where a person was asked."),
    status: z.number().int().nullable().describe("The receipt: the answer's status."),
    answeredAt: z.string().nullable(),
  })
  .describe("A request that can change something outside.")
  .meta({ id: "Effect" });
export type Effect = z.infer<typeof Effect>;

export const EFFECT_CONTRACTS = {
  listEffects: contract(
    ROUTES.listEffects,
    "Requests that can have changed something outside, the newest first",
    z.strictObject({ sandbox: SandboxRef.optional(), limit: count(1, 1000).default(200).describe("At most.") }),
    z.object({ effects: z.array(Effect) }),
  ),
} as const;
