/** The way out of each sandbox, and its own door to the server: opened when its processes are there, changed on request, closed with it. */
import { VivError } from "../../base/schema/errors.ts";
import {
  canonicalHost,
  NO_NETWORK,
  narrower,
  type EffectsMode,
  type HostRule,
  type NetworkMode,
  type NetworkReport,
  type NetworkRules,
  type PrivateHost,
  type UserNetwork,
} from "../../base/schema/network.ts";
import { isNeverPublic } from "../../rules/network/rules.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { chosenNetwork } from "./network-narrowing.ts";
import type { Parts } from "../shared/parts.ts";
import { isFinal, notRunning } from "../shared/state.ts";

export interface NetworkChange {
  readonly mode?: NetworkMode | undefined;
  readonly allow?: readonly HostRule[] | undefined;
  readonly deny?: readonly string[] | undefined;
  readonly ports?: readonly number[] | undefined;
  readonly effects?: EffectsMode | undefined;
}

type NetworkParts = Pick<Parts, "store" | "backends" | "user" | "live" | "egress" | "privateHosts" | "gateway">;

export class Networks {
  readonly #parts: NetworkParts;

  constructor(parts: NetworkParts) {
    this.#parts = parts;
  }

  /** For a sandbox whose process 1 was just launched or found again. What was opened ahead, for a spare, gets the rules of the sandbox. */
  async open(row: Pick<SandboxRow, "id" | "driver" | "network" | "project">): Promise<void> {
    const folder = this.#parts.backends.of(row).driver.sockets(row.id);
    if (folder === undefined) return;
    this.#parts.gateway.open(row.id, folder);
    await this.#parts.egress.set(row.id, folder, this.#rulesOf(row));
  }

  /** For sandboxes that run: what people opened or took back counts from now on. */
  async renew(): Promise<void> {
    for (const row of await this.#parts.store.sandboxes.list()) {
      const folder = this.#parts.live.get(row.id) === undefined ? undefined : this.#parts.backends.of(row).driver.sockets(row.id);
      if (folder !== undefined) await this.#parts.egress.set(row.id, folder, this.#rulesOf(row));
    }
  }

  close(sandbox: string): void {
    this.#parts.egress.close(sandbox);
    this.#parts.gateway.close(sandbox);
  }

  /** Called with the sandbox's lock held. */
  async change(row: SandboxRow, asked: NetworkChange): Promise<NetworkReport> {
    if (isFinal(row.state)) throw notRunning(row);
    const folder = this.#parts.backends.of(row).driver.sockets(row.id);
    if (folder === undefined) throw new VivError("unsupported", `The driver ${row.driver} has no walls around the network.`);
    refuseWider(asked.mode, this.#parts.user.network);
    const present = this.#rulesOf(row);
    refusePrivate(asked.allow ?? [], [...this.#parts.user.network.private, ...(present.private ?? [])]);
    const rules = changed(present, asked);
    const next: SandboxRow = { ...row, network: rules, networkChosen: chosenNetwork(row.networkChosen ?? row.network, asked) };
    await this.#parts.store.change(async (change) => {
      await change.sandboxes.put(next);
      await change.event("network.changed", row.id, { mode: rules.mode, allow: rules.allow.map(({ host }) => host).slice(0, 100) });
    });
    await this.#parts.egress.set(row.id, folder, rules);
    return this.report(next);
  }

  report(row: SandboxRow): NetworkReport {
    return { sandbox: row.id, name: row.name, rules: this.#rulesOf(row), ...this.#parts.egress.use(row.id) };
  }

  /** Rows of earlier versions have none, and the user's config may be stricter than when the row was written. */
  #rulesOf({ network = NO_NETWORK, project }: Pick<SandboxRow, "network" | "project">): NetworkRules {
    const { ceiling = "public", production } = this.#parts.user.network;
    const opened = this.#parts.privateHosts.of(project);
    const { private: _before, ...own } = network;
    return {
      ...own,
      ...(opened.length === 0 ? {} : { private: [...opened] }),
      mode: narrower(network.mode, ceiling),
      allow: network.allow.map((rule) => ({ ...rule, host: canonicalHost(rule.host) })),
      production: [...new Set([...network.production, ...production].map(canonicalHost))],
    };
  }
}

/** An explicit wish over the ceiling is refused rather than cut. */
export function refuseWider(asked: NetworkMode | undefined, { ceiling }: Pick<UserNetwork, "ceiling">): void {
  if (asked === undefined || ceiling === undefined || narrower(asked, ceiling) === asked) return;
  throw new VivError("invalid_input", `The network mode ${asked} is over this machine's ceiling, ${ceiling}.`);
}

/** A rule for a host without a public address would open nothing. */
function refusePrivate(allow: readonly HostRule[], opened: readonly PrivateHost[]): void {
  const closed = allow.find(({ host }) => isNeverPublic(host) && !opened.some((rule) => rule.host === host));
  if (closed === undefined) return;
  const { host, ports = [443] } = closed;
  throw new VivError("invalid_input", `${host} has no public address, and allowed hosts are reached at public addresses alone.`, {
    remedy: `Open it for the project: \`viv network allow-private ${host}:${ports[0] ?? 443}\`.`,
  });
}

function changed(rules: NetworkRules, { mode, allow = [], deny = [], ports, effects }: NetworkChange): NetworkRules {
  const replaced = new Set([...deny, ...allow.map(({ host }) => host)]);
  return {
    ...rules,
    mode: mode ?? rules.mode,
    allow: [...rules.allow.filter(({ host }) => !replaced.has(host)), ...allow],
    ports: [...(ports ?? rules.ports)],
    production: [...new Set([...rules.production, ...deny])],
    effects: effects ?? rules.effects ?? "record",
  };
}
