/** Fires when a check that is run in a clone of reality from time to time begins to fail. One that goes on failing fires no more. */
import type { CheckResult } from "../../../base/schema/check.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { Verification } from "../../checks/verification.ts";
import type { Clock } from "../clock.ts";
import { PolledTrigger } from "./polled.ts";
import type { Cursor, Saw, Trouble } from "./trigger.ts";

export interface CheckTriggerParts {
  readonly project: string;
  readonly command: string;
  /** The line that prepares a fresh clone, as it is now. */
  readonly setup: () => Promise<string | undefined>;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number | undefined;
  readonly everyMs: number;
  readonly verification: Verification;
  readonly clock: Clock;
  readonly saw: Saw;
  readonly trouble: Trouble;
}

const SAID_CHARACTERS = 1_500;

export class CheckTrigger extends PolledTrigger {
  readonly #all: CheckTriggerParts;
  #isFailing: boolean;

  constructor(all: CheckTriggerParts, cursor: Cursor) {
    super(all.clock, all.everyMs, all.trouble);
    this.#all = all;
    this.#isFailing = cursor["failing"] === true;
  }

  protected async poll(): Promise<void> {
    const { passed, text } = await this.#judge();
    if (passed === !this.#isFailing) return;
    await this.#all.saw(passed ? [] : [{ key: null, text }], { failing: !passed });
    this.#isFailing = !passed;
  }

  async look(): Promise<{ wouldFire: boolean; seen: string }> {
    const { passed, text } = await this.#judge();
    return { wouldFire: !passed && !this.#isFailing, seen: text };
  }

  async #judge(): Promise<{ passed: boolean; text: string }> {
    const { project, command, setup, env, timeoutMs = LIMITS.attemptTimeoutMs, verification } = this.#all;
    const how = { checks: [command], setup: (await setup()) ?? null, repeat: 1, checkTimeoutMs: timeoutMs, measure: null, folders: {} };
    const verdict = await verification.verifyOn({ project, env }, [], "", how, this.stopping.signal);
    const failed = [...(verdict.setup === null ? [] : [verdict.setup]), ...verdict.checks].find((check) => !check.passed);
    return { passed: verdict.passed, text: failed === undefined ? `\`${command}\` passes.` : textOf(failed) };
  }
}

function textOf({ command, exitCode, cause, output }: CheckResult): string {
  const why = cause === null ? `ended with ${exitCode}` : `was ended (${cause})`;
  return `\`${command}\` ${why}.\n${output.slice(-SAID_CHARACTERS)}`;
}
