/** Browsers that get notifications without an open page. Each belongs to a session of the dashboard, and goes with it. */
import { VivError } from "../../../base/schema/errors.ts";
import { newId } from "../../../base/schema/ids.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { ParsedOf } from "../../../base/schema/contracts.ts";
import type { PushBrowser } from "../../../base/schema/notification.ts";
import type { PushBrowserRow } from "../../../base/store/rows.ts";
import type { Read, Store } from "../../../base/store/store.ts";
import type { Sessions } from "../../../rules/sessions/sessions.ts";
import type { Channel } from "../channel.ts";
import { WebPushChannel } from "../channels/web-push.ts";
import { parsePushKeys } from "./encryption.ts";
import type { PushEndpoints } from "./endpoint.ts";
import type { ServerKey } from "./server-key.ts";

/** Before the id of a browser, in the name of its channel; no name of the config has a space. */
export const PUSH_PREFIX = "push ";

export interface PushBrowsersParts {
  readonly store: Store;
  readonly sessions: Pick<Sessions, "list">;
  readonly key: ServerKey;
  readonly endpoints: PushEndpoints;
  /** Whom push services may write to. */
  readonly contact: () => string;
}

export class PushBrowsers {
  readonly #all: PushBrowsersParts;

  constructor(all: PushBrowsersParts) {
    this.#all = all;
  }

  get publicKey(): string {
    return this.#all.key.publicKey;
  }

  async list(read: Read = this.#all.store): Promise<PushBrowser[]> {
    const open = new Set(this.#all.sessions.list().map(({ id }) => id));
    return (await read.pushBrowsers.list()).filter(({ session }) => open.has(session)).map(shown);
  }

  /** The same browser again, as after a new login, takes the place of what was there. */
  async add({ session, endpoint, keys }: ParsedOf<"addPushBrowser">): Promise<PushBrowser> {
    const open = this.#all.sessions.list().find(({ id, state }) => id === session && state === "open");
    if (open === undefined)
      throw new VivError("not_found", `No browser is logged in with the session ${session}.`, {
        remedy: "Open a new link with `viv open`.",
      });
    const url = this.#all.endpoints.parse(endpoint);
    parsePushKeys(keys);
    await this.#all.endpoints.address(url);
    const row: PushBrowserRow = {
      id: newId("subscription"),
      session,
      service: url.host,
      createdAt: new Date().toISOString(),
      endpoint,
      keys,
    };
    await this.#all.store.change(async (change) => {
      const there = await change.pushBrowsers.list();
      const same = there.filter((one) => one.endpoint === endpoint || one.session === session);
      if (there.length - same.length >= LIMITS.pushBrowsers)
        throw new VivError("no_capacity", "Too many browsers get notifications.", { remedy: "Log some out: `viv open --sessions`." });
      for (const { id } of same) await change.pushBrowsers.remove(id);
      await change.pushBrowsers.put(row);
    });
    return shown(row);
  }

  async remove(id: string): Promise<void> {
    if ((await this.#all.store.pushBrowsers.get(id)) === undefined)
      throw new VivError("not_found", `There is no browser ${id} that gets notifications.`, { remedy: "Look at `viv notify`." });
    await this.drop(id);
  }

  async drop(id: string): Promise<void> {
    await this.#all.store.change((change) => change.pushBrowsers.remove(id));
  }

  async channel(id: string): Promise<Channel | undefined> {
    const row = await this.#all.store.pushBrowsers.get(id);
    const { sessions, key, endpoints, contact } = this.#all;
    if (row === undefined || !sessions.list().some((one) => one.id === row.session)) return undefined;
    return new WebPushChannel(row, key, endpoints, contact);
  }
}

function shown({ id, session, service, createdAt }: PushBrowserRow): PushBrowser {
  return { id, session, service, createdAt };
}
