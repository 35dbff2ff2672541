/** What a sandbox gets at run time without a person. */
import type { ProjectConfig } from "../schema/config.ts";
import { LIMITS } from "../schema/limits.ts";
import type { Limits } from "../schema/sandbox.ts";

export type Ceiling = Pick<Limits, "cpus" | "memoryBytes">;
/** What a person chose for one sandbox. */
export type GivenLimits = { readonly [Key in keyof Ceiling]?: number | undefined };

/** The limits that a person chose, from a sandbox's row. Rows of earlier versions do not say it: there a limit below the default counts as chosen. */
export function givenTo({ givenLimits, limits }: { readonly givenLimits?: GivenLimits | undefined; readonly limits: Limits }): GivenLimits {
  if (givenLimits !== undefined) return givenLimits;
  return {
    ...(limits.cpus < LIMITS.defaultCpus ? { cpus: limits.cpus } : {}),
    ...(limits.memoryBytes < LIMITS.defaultMemoryBytes ? { memoryBytes: limits.memoryBytes } : {}),
  };
}

/**
 * A person's choice for the sandbox; else what the project's config names for requests, else its limits: a limit that its sandbox lifts
 * by itself would be none. Until a person trusts the project, its config only lowers what every sandbox has.
 */
export function runTimeCeiling(config: Partial<Pick<ProjectConfig, "limits" | "policy">>, given: GivenLimits = {}): Ceiling {
  const { policy, limits } = config;
  const within = (named: number | undefined, usual: number): number =>
    policy?.tightenOnly === true ? Math.min(named ?? usual, usual) : (named ?? usual);
  return {
    cpus: given.cpus ?? within(policy?.ceiling?.cpus ?? limits?.cpus, LIMITS.grantedCpus),
    memoryBytes: given.memoryBytes ?? within(policy?.ceiling?.memory ?? limits?.memory, LIMITS.grantedMemoryBytes),
  };
}
