/**
 * Where push messages may go. A browser names the endpoint, and the server sends requests there: an endpoint inside this machine's
 * network would make the server a way into it. So it is https on the usual port, at public addresses alone, and no redirect is
 * followed. Origins that the user's config names are exempt.
 */
import { VivError } from "../../../base/schema/errors.ts";
import { kindHere, ownAddresses } from "../../../rules/network/addresses.ts";
import type { Resolve } from "../../../rules/network/resolver.ts";

function refuse(why: string): never {
  throw new VivError("invalid_input", `The address of the push service ${why}.`, {
    remedy: "Name a push service of your own in `notifications.pushServices` of your config, or use a webhook.",
  });
}

export class PushEndpoints {
  readonly #named: () => readonly string[];
  readonly #resolve: Resolve;

  /** `named` are the origins of the user's config. */
  constructor(named: () => readonly string[], resolve: Resolve) {
    this.#named = named;
    this.#resolve = resolve;
  }

  #isNamed({ origin }: URL): boolean {
    return this.#named().some((one) => new URL(one).origin === origin);
  }

  /** Throws for an endpoint that no push service has, before anything is resolved. */
  parse(endpoint: string): URL {
    const url = new URL(endpoint);
    if (url.username !== "" || url.password !== "") refuse("carries a login");
    if (this.#isNamed(url)) return url;
    if (url.protocol !== "https:") refuse("is not https");
    if (url.port !== "") refuse("names a port");
    return url;
  }

  /** The address to dial: checked now, and dialled as it was checked, so that a second answer of DNS changes nothing. */
  async address(url: URL): Promise<string | undefined> {
    if (this.#isNamed(this.parse(url.href))) return undefined;
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const found = /^[\d.]+$/.test(host) || host.includes(":") ? [host] : await this.#resolve(host);
    const own = ownAddresses();
    const [first] = found;
    if (first === undefined) refuse("has no address");
    if (found.some((one) => kindHere(one, () => own) !== "public")) refuse("leads into a private network");
    return first;
  }
}
