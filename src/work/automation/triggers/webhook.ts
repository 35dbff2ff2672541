/**
 * Fires when a signed call comes. The signature is an HMAC-SHA256 over the time and the body; a call that is old, or that came
 * before, is refused. Calls that come at once are kept in one change; beyond a bound they are turned away.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { VivError } from "../../../base/schema/errors.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { FiringRow } from "../../../base/store/rows.ts";
import type { Clock } from "../clock.ts";
import type { Sighting } from "../firing-record.ts";
import type { TriggerSource } from "./trigger.ts";

export interface HookCall {
  /** The header: `t=SECONDS,v1=HEX`. */
  readonly signature: string | undefined;
  readonly body: Buffer;
}

interface WaitingCall {
  readonly sighting: Sighting;
  readonly done: PromiseWithResolvers<string>;
}

type TakeAll = (sightings: readonly Sighting[]) => Promise<FiringRow | undefined>;

const HEADER = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/;

export function newHookSecret(): string {
  return `whs_${randomBytes(32).toString("base64url")}`;
}

/** What a caller sends as the header. */
export function signHook(secret: string, seconds: number, body: Buffer | string): string {
  return `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.`).update(body).digest("hex")}`;
}

export class WebhookTrigger implements TriggerSource {
  readonly #secret: string;
  readonly #clock: Clock;
  readonly #take: TakeAll;
  #waiting: WaitingCall[] = [];
  #writing: Promise<void> | undefined;
  #isStopped = false;

  constructor(secret: string, clock: Clock, take: TakeAll) {
    this.#secret = secret;
    this.#clock = clock;
    this.#take = take;
  }

  async start(): Promise<void> {
    await Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#writing;
  }

  async look(): Promise<{ wouldFire: boolean; seen: string }> {
    return { wouldFire: this.#waiting.length > 0, seen: "It waits for a signed call." };
  }

  /** Resolves with the firing once the call is kept. */
  async call({ signature, body }: HookCall): Promise<string> {
    const key = this.#check(signature, body);
    if (this.#isStopped) throw new VivError("not_found", "There is no such webhook.");
    if (this.#waiting.length >= LIMITS.waitingHooks)
      throw new VivError("rate_limited", `${LIMITS.waitingHooks} calls wait to be kept, and no more are taken.`);
    const done = Promise.withResolvers<string>();
    this.#waiting.push({ sighting: { key: `hook:${key}`, text: body.toString("utf8").slice(0, LIMITS.seenCharacters) }, done });
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined));
    return done.promise;
  }

  /** Throws unless the call is signed, new enough and whole; the signature names the call. */
  #check(signature: string | undefined, body: Buffer): string {
    const [, time = "", given = ""] = HEADER.exec(signature ?? "") ?? [];
    if (given === "") throw refused("its signature is missing, or not of the form t=SECONDS,v1=HEX");
    const expected = createHmac("sha256", this.#secret).update(`${time}.`).update(body).digest();
    if (!timingSafeEqual(expected, Buffer.from(given, "hex"))) throw refused("its signature is not right");
    if (Math.abs(this.#clock.now() - Number(time) * 1000) > LIMITS.hookAgeMs)
      throw refused(`it was signed more than ${LIMITS.hookAgeMs / 60_000} minutes ago, or ahead`);
    return given;
  }

  async #writeAll(): Promise<void> {
    // Calls that came in one turn of the event loop are kept together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const calls = this.#waiting;
      this.#waiting = [];
      await this.#write(calls);
    }
  }

  async #write(calls: readonly WaitingCall[]): Promise<void> {
    const [first, ...rest] = uniqueOf(calls);
    if (first === undefined) return;
    try {
      const firing = await this.#take([first, ...rest].map(({ sighting }) => sighting));
      for (const { done } of calls) {
        if (firing === undefined) done.reject(replayed());
        else done.resolve(firing.id);
      }
    } catch (error) {
      for (const { done } of calls) done.reject(error);
    }
  }
}

/** The first of those that are the same; the others were replayed. */
function uniqueOf(calls: readonly WaitingCall[]): WaitingCall[] {
  const seen = new Set<string | null>();
  return calls.filter(({ sighting: { key }, done }) => {
    if (!seen.has(key)) return seen.add(key);
    done.reject(replayed());
    return false;
  });
}

function refused(why: string): VivError {
  return new VivError("unauthorized", `The call of the webhook is refused: ${why}.`, {
    remedy: "Sign the time, a dot and the body with the secret of `viv automation secret`, see docs/AUTOMATION.md.",
  });
}

function replayed(): VivError {
  return new VivError("exists", "This call of the webhook came before, or its automation does not wait now.", {
    remedy: "Sign a new call with the present time; look at `viv automation show`.",
  });
}
