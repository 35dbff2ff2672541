/** Names to addresses, once a request. */
import { lookup, Resolver } from "node:dns/promises";
import { LIMITS } from "../../base/schema/limits.ts";
import type { UserNetwork } from "../../base/schema/network.ts";

/** All addresses of a name. An empty list, or an error with ENOTFOUND or ENODATA, if it has none; any other error if no server could tell. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** As programs of this machine resolve: hosts file, and the machine's DNS servers. */
const systemResolve: Resolve = async (host) => (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

/** As the user's config says. */
export function resolverOf({ resolvers }: Pick<UserNetwork, "resolvers">): Resolve {
  return resolvers.length === 0 ? systemResolve : askServers(resolvers);
}

/** Asks these servers alone. */
export function askServers(servers: readonly string[]): Resolve {
  return async (host) => {
    const resolver = new Resolver({ timeout: LIMITS.egressResolveMs / 2, tries: 2 });
    resolver.setServers(servers);
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    const failure = answers.find((answer) => answer.status === "rejected" && !isMissing(answer.reason));
    if (addresses.length === 0 && failure?.status === "rejected") throw failure.reason;
    return addresses;
  };
}

/** Whether a server said that there is no such address, rather than none said anything. */
export function isMissing(error: unknown): boolean {
  return ["ENOTFOUND", "ENODATA"].includes((error as NodeJS.ErrnoException).code ?? "");
}

/** Names that one sandbox asks for: so many at once, and each once. The others wait for their turn. */
export class Lookups {
  readonly #underWay = new Map<string, Promise<readonly string[]>>();

  async find(host: string, resolve: Resolve): Promise<readonly string[]> {
    const until = performance.now() + LIMITS.egressResolveMs;
    while (!this.#underWay.has(host) && this.#underWay.size >= LIMITS.egressResolving) {
      await Promise.race(this.#underWay.values()).catch(() => undefined);
      // No request waits for it any more.
      if (performance.now() > until) return [];
    }
    const known = this.#underWay.get(host);
    if (known !== undefined) return known;
    const begun = resolve(host).finally(() => this.#underWay.delete(host));
    this.#underWay.set(host, begun);
    return begun;
  }
}
