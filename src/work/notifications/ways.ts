/** The ways to a person: channels of the user's config, as its file is now, and browsers that are subscribed. */
import type { UserConfig } from "../../base/schema/config.ts";
import type { ChannelConfig, NotificationKind } from "../../base/schema/notification.ts";
import type { Read } from "../../base/store/store.ts";
import type { Secrets } from "../../rules/secrets/secrets.ts";
import type { Channel } from "./channel.ts";
import { CommandChannel } from "./channels/command.ts";
import { DesktopChannel } from "./channels/desktop.ts";
import { EmailChannel } from "./channels/email.ts";
import { WebhookChannel } from "./channels/webhook.ts";
import { PUSH_PREFIX, type PushBrowsers } from "./push/browsers.ts";

export interface WaysParts {
  /** The user's config, never a project's. */
  readonly config: () => UserConfig["notifications"];
  readonly secrets: Secrets;
  /** Variables of programs that are started. */
  readonly env: Readonly<Record<string, string>>;
  readonly browsers: PushBrowsers;
}

interface Way {
  readonly name: string;
  readonly type: ChannelConfig["type"] | "push";
  readonly on: NotificationKind[];
}

export class Ways {
  readonly #all: WaysParts;

  constructor(all: WaysParts) {
    this.#all = all;
  }

  get browsers(): PushBrowsers {
    return this.#all.browsers;
  }

  async list(read?: Read): Promise<Way[]> {
    const { channels, on } = this.#all.config();
    const named = Object.entries(channels).map(([name, { type, on: own }]): Way => ({ name, type, on: own ?? on }));
    const browsers = (await this.browsers.list(read)).map(({ id }): Way => ({ name: `${PUSH_PREFIX}${id}`, type: "push", on }));
    return [...named, ...browsers];
  }

  /** Names of those that are told of this. */
  async wanting(read: Read, kind: NotificationKind): Promise<string[]> {
    return (await this.list(read)).filter(({ on }) => on.includes(kind)).map(({ name }) => name);
  }

  async channel(name: string): Promise<Channel | undefined> {
    if (name.startsWith(PUSH_PREFIX)) return this.browsers.channel(name.slice(PUSH_PREFIX.length));
    const { channels } = this.#all.config();
    const config = Object.hasOwn(channels, name) ? channels[name] : undefined;
    return config === undefined ? undefined : this.#make(config);
  }

  /** A browser that takes no more messages; what the config names stays. */
  async forget(name: string): Promise<void> {
    if (name.startsWith(PUSH_PREFIX)) await this.browsers.drop(name.slice(PUSH_PREFIX.length));
  }

  #make(config: ChannelConfig): Channel {
    const { secrets, env } = this.#all;
    switch (config.type) {
      case "webhook":
        return new WebhookChannel(config, secrets);
      case "command":
        return new CommandChannel(config, env);
      case "email":
        return new EmailChannel(config, secrets);
      case "desktop":
        return new DesktopChannel(env);
    }
  }
}
