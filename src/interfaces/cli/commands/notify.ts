import type { OutputOf } from "../../../base/schema/contracts.ts";
import { command } from "../command.ts";
import { table } from "../table.ts";
import { ago, clean } from "../text.ts";

type Deliveries = OutputOf<"testNotification">["deliveries"];

function fate({ state, reason }: Deliveries[number]): string {
  if (state === "sent") return "sent";
  return `${state === "waiting" ? "not yet sent, and tried again" : state}${reason === null ? "" : `: ${clean(reason)}`}`;
}

export default command({
  name: "notify",
  summary: "Ways that notifications reach you by, and a test of them",
  details:
    "A question, and a run or an experiment that is done or has failed, reach you where you look at no page: by channels that your config names (webhook, command, e-mail, desktop), and by browsers that you subscribed on the dashboard's page Machine, Notifications.",
  examples: [
    ["viv notify", "which ways there are, and how they do"],
    ["viv notify --test", "send a test by each"],
    ["viv notify --test phone", "send a test by the channel called phone"],
    ["viv notify --log", "what was sent lately"],
  ],
  options: {
    test: { type: "flag", summary: "Send a notification that says that it is a test" },
    log: { type: "flag", summary: "Show what was sent lately" },
    remove: { type: "text", value: "BROWSER", summary: "Send this browser no more" },
  },
  positionals: [{ name: "CHANNEL", summary: "Only this one", optional: true }],
  async run({ options, positionals: [channel], json, screen, client }) {
    const server = await client();
    if (options.remove !== undefined) {
      const done = await server.call("removePushBrowser", { browser: options.remove });
      return json ? screen.json(done) : screen.print("That browser gets no more notifications.");
    }
    if (options.test) {
      const { deliveries } = await server.call("testNotification", channel === undefined ? {} : { channel });
      if (json) screen.json({ deliveries });
      else for (const one of deliveries) screen.print(`${one.channel}: ${fate(one)}`);
      return deliveries.every(({ state }) => state === "sent") ? 0 : 1;
    }
    const found = await server.call("listNotifications", {});
    if (json) return screen.json(found);
    if (options.log) {
      const lines = table(
        found.deliveries.filter((one) => channel === undefined || one.channel === channel),
        [
          { title: "WHEN", value: ({ notification }) => ago(notification.at) },
          { title: "CHANNEL", value: (one) => one.channel },
          { title: "FATE", value: fate },
          { title: "NOTIFICATION", value: ({ notification }) => clean(notification.title), shrinks: true },
        ],
      );
      for (const line of lines) screen.print(line);
      return;
    }
    if (found.channels.length === 0)
      return screen.print(
        "There is no way to you yet: name channels in your config, or subscribe a browser at `viv open /machine?show=notifications`.",
      );
    const lines = table(found.channels, [
      { title: "CHANNEL", value: ({ name }) => name },
      { title: "TYPE", value: ({ type }) => type },
      { title: "TELLS OF", value: ({ on }) => on.join(", ") },
      { title: "LAST SENT", value: ({ sentAt }) => (sentAt === null ? "" : ago(sentAt)) },
      { title: "TROUBLE", value: ({ trouble }) => clean(trouble ?? ""), shrinks: true },
    ]);
    for (const line of lines) screen.print(line);
  },
});
