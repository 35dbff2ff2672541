/** What a sandbox still reaches when its processes are started anew: what it reached, as far as a new one would, too. */
import {
  canonicalHost,
  narrower,
  networkRules,
  type ChosenNetwork,
  type HostRule,
  type NetworkRules,
  type ProjectNetwork,
  type UserNetwork,
} from "../../base/schema/network.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

/** What was chosen before and is chosen now; hosts that are denied are no longer chosen. */
export function chosenNetwork(
  before: ChosenNetwork = {},
  now: ChosenNetwork & { readonly deny?: readonly string[] | undefined },
): ChosenNetwork {
  const replaced = new Set([...(now.deny ?? []), ...(now.allow ?? []).map(({ host }) => host)]);
  return {
    mode: now.mode ?? before.mode,
    allow: [...(before.allow ?? []).filter(({ host }) => !replaced.has(host)), ...(now.allow ?? [])],
    ports: now.ports ?? before.ports,
  };
}

export function narrowedNetwork(
  { network, networkChosen }: Pick<SandboxRow, "network" | "networkChosen">,
  project: ProjectNetwork,
  user: UserNetwork,
): NetworkRules | undefined {
  if (network === undefined) return undefined;
  // Rows of earlier versions don't tell what a person chose: all of it may be.
  const chosen = networkChosen ?? network;
  const configured = networkRules(project, user, { mode: chosen.mode });
  const now: NetworkRules = {
    ...configured,
    allow: [...configured.allow, ...(chosen.allow ?? [])],
    ports: [...(chosen.ports ?? configured.ports)],
  };
  const ports = network.ports.filter((port) => now.ports.includes(port));
  return {
    mode: narrower(network.mode, now.mode),
    allow: network.allow.filter((rule) => isOpen(rule, rule.ports ?? ports, now)),
    ports,
    production: [...new Set([...network.production, ...now.production].map(canonicalHost))],
    effects: network.effects === "hold" || now.effects === "hold" ? "hold" : "record",
    ...(network.variables === undefined ? {} : { variables: network.variables }),
  };
}

/** Whether rules reach a host on these ports: they name it, or everything public. */
function isOpen({ host, tcp }: HostRule, ports: readonly number[], now: NetworkRules): boolean {
  const covers = (open: readonly number[]): boolean => ports.every((port) => open.includes(port));
  if (now.mode === "public" && !tcp && covers(now.ports)) return true;
  return now.allow.some((other) => other.host === host && (other.tcp || !tcp) && covers(other.ports ?? now.ports));
}
