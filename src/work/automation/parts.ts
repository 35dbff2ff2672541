/** What the parts of this room work with. */
import type { Audit } from "../../rules/audit/audit.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Verification } from "../checks/verification.ts";
import type { Experiments } from "../experiments/experiments.ts";
import type { Promotions } from "../promotion/promotions.ts";
import type { Clock } from "./clock.ts";

export interface AutomationParts {
  readonly parts: Pick<Parts, "store" | "user" | "state" | "log" | "reach">;
  readonly audit: Audit;
  readonly sandboxes: Pick<Sandboxes, "remove">;
  readonly verification: Verification;
  readonly experiments: Experiments;
  /** Absent where there is no cell: then nothing is promoted. */
  readonly promotions: Promotions | undefined;
  readonly clock: Clock;
  /** Variables that the server was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
}
