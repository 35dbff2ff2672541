/** What the policy says of a host, for the proxy: as the project's config and the sandbox's level are now. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { CONFIG_NAME, loadProjectConfig } from "../config/project-config.ts";
import { classifyHost } from "../policy/addresses.ts";
import { Layer, type Judgement } from "../policy/layer.ts";
import { decide, effectivePolicy } from "../policy/policy.ts";
import type { ProjectConfig } from "../schema/config.ts";
import { type AutonomyLevel, NO_CHOICE, type YoloLevel } from "../schema/policy.ts";
import type { SandboxRow, Store } from "../store/store.ts";

/** How a sandbox's agent was let loose; none of it where a person works in it by hand. */
export interface Autonomy {
  readonly level?: AutonomyLevel | null | undefined;
  readonly yolo?: YoloLevel | null | undefined;
}

/** `named` is a host that somebody entitled to it has named already, in `network.allow` or `network.private`. */
export type HostPolicy = (host: string, named: boolean) => Judgement;

interface Known {
  readonly stamp: string;
  readonly policy: HostPolicy;
}

const MOST_KNOWN = 256;
const LEFT_ALONE: Judgement = { verdict: "allow", rule: "none", reason: "No rule of the policy names it." };

export class HostPolicies {
  readonly #store: Store;
  readonly #known = new Map<string, Known>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** A config that can't be read leaves in force what it said before; without a before, nothing is known and it throws. */
  async of(row: SandboxRow): Promise<HostPolicy> {
    const autonomy = row.autonomy ?? NO_CHOICE;
    const trusted = (await this.#store.projectByPath(row.project))?.trusted ?? null;
    const key = JSON.stringify([row.project, trusted, autonomy.level, autonomy.yolo]);
    const known = this.#known.get(key);
    const stamp = stampOf(join(row.project, CONFIG_NAME));
    if (known?.stamp === stamp) return known.policy;
    try {
      const { config } = loadProjectConfig(row.project, trusted);
      const policy = hostPolicy(config, autonomy);
      if (this.#known.size >= MOST_KNOWN) this.#known.clear();
      this.#known.set(key, { stamp, policy });
      return policy;
    } catch (error) {
      if (known === undefined) throw error;
      return known.policy;
    }
  }
}

/** Changes with the file. */
function stampOf(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? "" : `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

/**
 * Without a level nobody was let loose: then only rules that name hosts count, as they do for hosts that were named already and
 * for those that are not on the public web, which the proxy closes by itself and explains better.
 */
export function hostPolicy(config: ProjectConfig, { level, yolo }: Autonomy): HostPolicy {
  const own = new Layer([{ rules: { host: config.policy?.["host"] ?? {} }, origin: CONFIG_NAME }]);
  const isLoose = (level ?? yolo ?? config.policy?.level ?? config.policy?.yolo) !== undefined;
  const choice = isLoose ? { level: level ?? undefined, yolo: yolo ?? undefined } : { yolo: 4 as const };
  const policy = effectivePolicy({ config, ...choice });
  return (host, named) => {
    const judged = decide(policy, { kind: "host", host });
    const byName = !isLoose || named || classifyHost(host) !== "public";
    if (judged.verdict === "allow" || !byName || judged.rule.startsWith("production")) return judged;
    return own.host({ host }) ?? LEFT_ALONE;
  };
}
