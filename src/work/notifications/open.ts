/** Makes what tells people, of the parts of the floors below. */
import { join } from "node:path";
import type { Closers } from "../../base/host/closers.ts";
import { TOOL_PATH } from "../../base/host/run.ts";
import type { State } from "../../base/open.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { resolverOf } from "../../rules/network/resolver.ts";
import type { Rules } from "../../rules/open.ts";
import { Notifications } from "./notifications.ts";
import { PushBrowsers } from "./push/browsers.ts";
import { PushEndpoints } from "./push/endpoint.ts";
import { ServerKey } from "./push/server-key.ts";
import { Ways } from "./ways.ts";

/** What the user's own programs need of the server's environment: where they are, and where the desktop is. */
const VARIABLES = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];
/** First calls are answered before it. */
const PRELOAD_MS = 2_000;
/** Push services want to know whom to write to; one that is no address is refused by some. */
const CONTACT = "mailto:vivarium@example.com";

export interface NotificationsOptions {
  /** The dashboard's address, once the server listens. */
  readonly origin: () => string | null;
  readonly reach: (point: string) => void;
}

export async function openNotifications(
  { paths, store, log, env }: State,
  { config, secrets, sessions }: Rules,
  { origin, reach }: NotificationsOptions,
  closers: Closers,
): Promise<{ notifications: Notifications; pushBrowsers: PushBrowsers }> {
  const settings = () => config.get().notifications;
  const endpoints = new PushEndpoints(
    () => settings().pushServices,
    (host) => resolverOf(config.get().network)(host),
  );
  const contact = (): string => settings().contact ?? CONTACT;
  const pushBrowsers = new PushBrowsers({ store, sessions, key: new ServerKey(join(paths.home, "push-key")), endpoints, contact });
  const given = VARIABLES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  const ways = new Ways({ config: settings, secrets, env: { PATH: TOOL_PATH, ...Object.fromEntries(given) }, browsers: pushBrowsers });
  const urlOf = (link: string): string => `${origin() ?? `http://127.0.0.1:${LIMITS.dashboardPort}`}${link}`;
  // An upgrade in place takes the part of the program that sends mails away from under a server that has not loaded it.
  const sendsMails = (): boolean => Object.values(settings().channels).some(({ type }) => type === "email");
  const preload = setTimeout(() => (sendsMails() ? void import("nodemailer").catch(() => undefined) : undefined), PRELOAD_MS).unref();
  closers.add(() => clearTimeout(preload));
  const notifications = await Notifications.open({ store, log, ways, urlOf, reach });
  closers.add(() => notifications.close());
  return { notifications, pushBrowsers };
}
