// Made from the contracts by scripts/sdk-types.ts.
import type { Risk } from "./promotions.ts";

/** A question for a person. */
export interface Question {
  /** Id of a question for a person, or of a promotion that waits for one. */
  id: string;
  /** expired is a denial by silence; used was approved and has been done. */
  state: "waiting" | "approved" | "denied" | "expired" | "used";
  /** Id of the sandbox that asks; null for the host's own. */
  sandbox: string | null;
  sandboxName: string | null;
  /** Path of the project. */
  project: string;
  kind: "command" | "tool" | "path" | "host" | "effect" | "promotion" | "resources" | "secret" | "private" | "run";
  /** The exact command, path, host, promotion or secret. */
  target: string;
  /** Of the exact action and the sandbox: an answer counts for nothing else. */
  hash: string;
  /** The rule that made it a question. */
  rule: string | null;
  /** Why a person is asked, one sentence. */
  reason: string;
  /** The narrow rule that `always` would add; null where that can't be had. */
  always: string | null;
  /** The exact action, where the policy asked about one. */
  action?: {
    kind: "command";
    /** A shell line, or words. */
    command: string | string[];
  } | {
    kind: "tool";
    tool: string;
    /** What it works on: a path, a command, an address. */
    argument?: string | undefined;
  } | {
    kind: "path";
    path: string;
    access: "read" | "write" | "delete";
  } | {
    kind: "host";
    host: string;
    port?: number | undefined;
  } | {
    kind: "resources";
    /** CPU cores in all. */
    cpus?: number | undefined;
    /** Memory in all. */
    memoryBytes?: number | undefined;
  } | {
    kind: "promotion";
    /** Stage it goes to. */
    stage: string;
  } | undefined;
  askedAt: string;
  /** No answer by then is a denial; null for a promotion, which waits as long as its sandbox is there. */
  deadline: string | null;
  answeredAt: string | null;
  answeredBy: string | null;
  scope: "once" | "always" | null;
  /** When the rule that `always` had added was taken back. */
  forgottenAt?: string | undefined;
  /** Of a promotion: what a person should look at first. */
  risks?: Risk[] | undefined;
}
