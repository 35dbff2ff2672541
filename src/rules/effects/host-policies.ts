/** What the policy of a sandbox says of a host, for the proxy, which asks for every connection. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { policyOf } from "../actions/policy-of.ts";
import type { Approvals } from "../approvals/approvals.ts";
import { CONFIG_NAME, loadProjectConfig } from "../../base/config/project-config.ts";
import { classifyHost } from "../../base/policy/addresses.ts";
import { Layer, type Judgement } from "../../base/policy/layer.ts";
import { decide, type EffectivePolicy } from "../../base/policy/policy.ts";
import type { PolicyRule } from "../../base/schema/policy.ts";
import type { Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

/** `named` is a host that the user's config or a trusted project already names, in `network.allow` or `network.private`. */
export type HostPolicy = (host: string, named: boolean) => Judgement;

/** Sandboxes of one project mostly share theirs. */
const MOST_KNOWN = 32;
/** Hosts whose judgement a policy keeps. */
const MOST_HOSTS = 256;
const LEFT_ALONE: Judgement = { verdict: "allow", rule: "none", reason: "No rule of the policy names it." };

export class HostPolicies {
  readonly #store: Store;
  readonly #known = new Map<string, HostPolicy>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** As config, level and answers of people are now. */
  async of(row: SandboxRow, approvals: Approvals): Promise<HostPolicy> {
    const trusted = (await this.#store.projects.find({ path: row.project }))?.trusted ?? null;
    const always = (await approvals.rules(row.project)).map(({ id }) => id);
    const file = stampOf(join(row.project, CONFIG_NAME));
    const key = JSON.stringify([row.project, file, trusted, row.autonomy, row.network?.production, always]);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const { config } = loadProjectConfig(row.project, trusted);
    const made = hostPolicy(await policyOf(this.#store, approvals, row), config.policy?.["host"]);
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(key, made);
    return made;
  }
}

/** Changes with the file. */
function stampOf(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? "" : `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

/**
 * A level speaks of the public web. For hosts that were named already only rules of the config count, and for those that are not on
 * the public web, too: the proxy closes them by itself and explains it better.
 */
function hostPolicy(policy: EffectivePolicy, rule: PolicyRule | undefined): HostPolicy {
  const own = new Layer([{ rules: { host: rule ?? {} }, origin: CONFIG_NAME }]);
  const judge = (host: string, named: boolean): Judgement => {
    const judged = decide(policy, { kind: "host", host });
    const byLevel = !named && classifyHost(host) === "public";
    if (judged.verdict === "allow" || byLevel || judged.rule.startsWith("production")) return judged;
    return own.host({ host }) ?? LEFT_ALONE;
  };
  const known = new Map<string, Judgement>();
  return (host, named) => {
    const key = `${named} ${host}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    if (known.size >= MOST_HOSTS) known.clear();
    const judged = judge(host, named);
    known.set(key, judged);
    return judged;
  };
}
