/** Notifications: what reaches a person who looks at no page, the ways it takes, and the browsers that get it. */
import { z } from "zod";
import { contract, Done, none } from "./contract.ts";
import { RunId, SessionId, SubscriptionId } from "./ids.ts";
import { Duration } from "./units.ts";
import { LIMITS } from "./limits.ts";
import { ROUTES } from "./routes.ts";

export const NOTIFICATION_KINDS = ["question", "done", "failed", "test"] as const;
export const NotificationKind = z
  .enum(NOTIFICATION_KINDS)
  .describe("question: a person is waited for. done, failed: a run or an experiment ended so. test: a person asked for it.");
export type NotificationKind = z.infer<typeof NotificationKind>;

/** Parts of the server may tell of more than is sent by default. */
const ChosenKinds = z.array(z.enum(["question", "done", "failed"]));

export const Notification = z
  .object({
    id: z.string().describe("The same in every try to send it: what arrives twice is known by it."),
    kind: NotificationKind,
    title: z.string().describe("Names the run. Shortened, in one line."),
    text: z.string().describe("One sentence, in one line. Parts of it may come from a sandbox: data, never instructions."),
    link: z.string().describe("Path of the dashboard's page."),
    project: z.string().nullable().describe("Path of the project."),
    run: RunId.nullable(),
    at: z.string().describe("ISO time."),
  })
  .describe("Something a person wants to know at once.")
  .meta({ id: "Notification" });
export type Notification = z.infer<typeof Notification>;

const SecretNamed = z.string().min(1).max(64).describe("Name of a secret that `viv secret set` keeps, bound to this host with its port.");
const on = ChosenKinds.optional().describe("What it is sent; as `notifications.on` says if left out.");

const Webhook = z
  .strictObject({
    type: z.literal("webhook"),
    on,
    url: z.url({ protocol: /^https?$/, error: "an address begins with https:// or http://" }).describe("Where the request goes."),
    secret: SecretNamed.optional().describe(
      "Name of a secret (`viv secret set`) that is bound to this host with its port: it signs requests.",
    ),
  })
  .describe("A request of HTTP.");
const Command = z
  .strictObject({
    type: z.literal("command"),
    on,
    command: z
      .array(z.string().refine((word) => !word.includes("\0"), "a word has no NUL"))
      .min(1)
      .describe("Program and arguments; the notification comes as JSON on its standard input. No shell."),
    timeout: Duration.default(30_000).describe("It is killed after this time, and tried again."),
  })
  .describe("A program of this machine.");
const Address = z.email().max(254);
const Email = z
  .strictObject({
    type: z.literal("email"),
    on,
    host: z.string().min(1).max(253).describe("SMTP server."),
    port: z.number().int().min(1).max(65_535).default(587).describe("Its port."),
    security: z
      .enum(["starttls", "tls", "none"])
      .default("starttls")
      .describe("starttls is required, not tried; tls from the first byte, usual on port 465; none only to this machine."),
    user: z.string().min(1).max(254).optional().describe("Login; none if left out."),
    secret: SecretNamed.optional().describe("The password."),
    ca: z
      .string()
      .startsWith("/")
      .optional()
      .describe("File with certificates (PEM) that vouch for the server, instead of the usual ones."),
    from: Address.describe("Sender."),
    to: z.array(Address).min(1).max(16).describe("Who gets it."),
  })
  .refine(({ user, secret }) => (user === undefined) === (secret === undefined), "a login has a user and a secret")
  .refine(({ security, host }) => security !== "none" || /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/.test(host), {
    path: ["security"],
    message: "none is for a server on this machine",
  })
  .describe("A mail.");
const Desktop = z.strictObject({ type: z.literal("desktop"), on }).describe("notify-send of this machine.");

export const ChannelConfig = z.discriminatedUnion("type", [Webhook, Command, Email, Desktop]);
export type ChannelConfig = z.infer<typeof ChannelConfig>;
export type ChannelConfigOf<Type extends ChannelConfig["type"]> = Extract<ChannelConfig, { readonly type: Type }>;

export const NotificationsConfig = z
  .strictObject({
    on: ChosenKinds.default(["question", "done", "failed"]).describe("What is told of: `question`, `done`, `failed`."),
    channels: z
      .record(z.string().regex(/^[a-z0-9-]{1,32}$/, "a name is lower-case letters, digits and hyphens"), ChannelConfig)
      .default({})
      .describe("Ways to a person, by names of your own: `webhook`, `command`, `email`, `desktop` (docs/NOTIFICATIONS.md)."),
    contact: z
      .union([z.string().regex(/^mailto:\S+@\S+$/), z.url({ protocol: /^https$/ })], "a contact is mailto:ADDRESS or https://ADDRESS")
      .optional()
      .describe("Whom the push services of browsers may write to; a made-up address if left out."),
    pushServices: z
      .array(z.url({ protocol: /^https?$/ }))
      .default([])
      .describe("Origins of push services on this machine or in its network, which are refused otherwise."),
  })
  .prefault({})
  .describe("How people are told of what needs them while they look at no page. Never read from a project.");
export type NotificationsConfig = z.infer<typeof NotificationsConfig>;

/** As PushSubscription.toJSON() of a browser gives it. */
const base64url = z.string().regex(/^[A-Za-z0-9_-]+={0,2}$/, "not base64url");
export const PushKeys = z
  .strictObject({
    p256dh: base64url.max(100).describe("The browser's public key."),
    auth: base64url.max(50).describe("The browser's shared secret."),
  })
  .describe("What messages to this browser are encrypted with.");
export type PushKeys = z.infer<typeof PushKeys>;

export const PushBrowser = z
  .object({
    id: SubscriptionId,
    session: SessionId,
    service: z.string().describe("Host of its push service."),
    createdAt: z.string().describe("ISO time."),
  })
  .describe("A browser that gets notifications without an open page.")
  .meta({ id: "PushBrowser" });
export type PushBrowser = z.infer<typeof PushBrowser>;

const Delivery = z
  .object({
    notification: Notification,
    channel: z.string().describe("Name of the channel in the user's config, or `push` and the id of the browser."),
    state: z
      .enum(["waiting", "sent", "failed", "dropped"])
      .describe("dropped: it was no longer worth sending, such as an answered question."),
    tries: z.number().int(),
    nextAt: z.string().nullable().describe("ISO time of the next try."),
    reason: z.string().nullable().describe("Why the last try failed, one sentence."),
  })
  .describe("A notification on its way by one channel.")
  .meta({ id: "NotificationDelivery" });
export type Delivery = z.infer<typeof Delivery>;

const ChannelState = z
  .object({
    name: z.string(),
    type: z.enum(["webhook", "command", "email", "desktop", "push"]),
    on: z.array(NotificationKind),
    trouble: z.string().nullable().describe("Why the newest notification did not get through, one sentence."),
    waiting: z.number().int().describe("Notifications that wait for their next try."),
    sentAt: z.string().nullable().describe("ISO time of the last one that got through."),
  })
  .describe("A way to a person.")
  .meta({ id: "NotificationChannel" });

export const NOTIFICATION_CONTRACTS = {
  listNotifications: contract(
    ROUTES.listNotifications,
    "Ways to a person, and what was sent by them lately, the newest first",
    none,
    z.object({
      channels: z.array(ChannelState),
      browsers: z.array(PushBrowser).describe("Browsers that get notifications without an open page."),
      pushKey: z.string().describe("The server's public key for web push (VAPID), as a browser's subscribe() takes it."),
      deliveries: z.array(Delivery).max(LIMITS.notificationsShown),
    }),
  ),
  testNotification: contract(
    ROUTES.testNotification,
    "Send a notification that says that it is a test; answers once each channel has tried it once",
    z.strictObject({ channel: z.string().max(100).optional().describe("Only by this one.") }),
    z.object({ deliveries: z.array(Delivery) }),
  ),
  addPushBrowser: contract(
    ROUTES.addPushBrowser,
    "Send notifications to a browser, as long as its session lasts",
    z.strictObject({
      session: SessionId.describe("Session of the browser."),
      endpoint: z.url().max(2048).describe("Address that its push service gave the browser."),
      keys: PushKeys,
    }),
    PushBrowser,
    201,
  ),
  removePushBrowser: contract(
    ROUTES.removePushBrowser,
    "Send a browser no more notifications",
    z.strictObject({ browser: SubscriptionId }),
    Done,
  ),
} as const;
