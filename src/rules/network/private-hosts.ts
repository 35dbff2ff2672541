/** Hosts with private addresses that a person opened for a project while the server runs. A rule is the question that was answered always. */
import type { PrivateHost } from "../../base/schema/network.ts";
import type { Store } from "../../base/store/store.ts";
import { parseAuthority } from "./host.ts";

export class PrivateHosts {
  readonly #store: Store;
  #byProject = new Map<string, PrivateHost[]>();
  #changed: () => Promise<void> = async () => undefined;

  private constructor(store: Store) {
    this.#store = store;
  }

  static async open(store: Store): Promise<PrivateHosts> {
    const hosts = new PrivateHosts(store);
    await hosts.#read();
    return hosts;
  }

  of(project: string): readonly PrivateHost[] {
    return this.#byProject.get(project) ?? [];
  }

  /** `changed` is called after every change that takes effect. */
  watch(changed: () => Promise<void>, failed: (error: unknown) => void): () => void {
    this.#changed = changed;
    return this.#store.onEvents((events) => {
      const concerns = events.some(
        ({ type, data }) => (type === "approval.answered" && data["scope"] === "always") || type === "policy.changed",
      );
      if (concerns) this.renew().catch(failed);
    });
  }

  /** Resolves once what was answered or taken back before counts everywhere. */
  async renew(): Promise<void> {
    await this.#read();
    await this.#changed();
  }

  async #read(): Promise<void> {
    const found = new Map<string, PrivateHost[]>();
    for (const { kind, scope, forgottenAt, project, target } of await this.#store.approvals.list({ scope: "always" })) {
      const place = parseAuthority(target);
      if (kind !== "private" || scope !== "always" || forgottenAt !== undefined || place === undefined) continue;
      found.set(project, [...(found.get(project) ?? []), { host: place.host, ports: [place.port], tcp: false }]);
    }
    this.#byProject = found;
  }
}
