/** Which of the registries that settings name are closed to a project's sandboxes, although a person could open them. */
import { withTimeout } from "../../base/host/with-timeout.ts";
import { PACKAGE_HOSTS } from "../../base/policy/lists.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ClosedRegistry, NetworkRules, PrivateHost } from "../../base/schema/network.ts";
import { isLoopback, kindHere } from "./addresses.ts";
import { isAddress } from "./host.ts";
import type { NamedRegistry } from "./registries.ts";
import type { Resolve } from "./resolver.ts";
import { decide, isLocalhost, matches } from "./rules.ts";

interface Reach {
  readonly rules: NetworkRules;
  /** Hosts the user's own config opens. */
  readonly opened: readonly PrivateHost[];
  /** Addresses of this machine. */
  readonly own: readonly string[];
  readonly resolve: Resolve;
}

/** The limit of time holds for all names together, since they are looked up at once. */
export async function closedRegistries(named: AsyncIterable<NamedRegistry>, reach: Reach): Promise<ClosedRegistry[]> {
  const places = new Map<string, NamedRegistry>();
  for await (const registry of named) {
    const place = `${registry.host} ${registry.port}`;
    if (places.get(place)?.ofProject ?? true) places.set(place, registry);
  }
  const judged = await Promise.all(
    [...places.values()].map(async (registry) => {
      const why = await whyClosed(registry, reach);
      const { host, port, file } = registry;
      return why === undefined ? [] : [{ host, port, file, why }];
    }),
  );
  return judged.flat().slice(0, LIMITS.closedRegistries);
}

async function whyClosed({ host, port, ofProject }: NamedRegistry, reach: Reach): Promise<ClosedRegistry["why"] | undefined> {
  // A sandbox has a loopback of its own, and nothing opens the machine's.
  if (isLocalhost(host) || (isAddress(host) && isLoopback(host))) return undefined;
  const ruling = decide(reach.rules, reach.opened, host, port);
  if (ruling.verdict === "allow" && ruling.private) return undefined;
  if (ruling.verdict === "deny") {
    if (ruling.code === "private_address") return "private address";
    if (ruling.code === "port_closed") return "port";
    // A name of the own network alone; whatever else is closed, no person opens it so.
    if (ruling.code !== "not_resolved") return undefined;
  }
  const kinds = (await addresses(host, ofProject, reach)).map((address) => kindHere(address, () => reach.own));
  return kinds.includes("private") && !kinds.includes("metadata") ? "private address" : undefined;
}

/** A project's file causes no query: its author would learn that the project is used, and where. */
async function addresses(host: string, ofProject: boolean, { resolve }: Reach): Promise<readonly string[]> {
  if (isAddress(host)) return [host];
  if (ofProject || PACKAGE_HOSTS.some((pattern) => matches(pattern, host))) return [];
  // A name that has no address now is met as a question when it is used.
  return withTimeout(resolve(host), LIMITS.closedRegistriesMs, "Looking up a registry").catch(() => []);
}
