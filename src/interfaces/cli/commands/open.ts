import { approverIfAny } from "../approver.ts";
import { showLink } from "../browser.ts";
import { command } from "../command.ts";
import { table } from "../table.ts";
import { until } from "../text.ts";

export default command({
  name: "open",
  summary: "Open the dashboard in a browser",
  details:
    "Prints a link that logs one browser in: it works once, for five minutes. The server listens on 127.0.0.1 from then on. A link made by a person on a terminal lets the browser answer questions, too; one that a program makes does not, unless VIV_APPROVER_TOKEN is set.",
  examples: [
    ["viv open", "the page that shows what needs you"],
    ["viv open /machine", "another page"],
    ["viv open --sessions", "which browsers are logged in"],
    ["viv open --end SESSION", "log one out"],
  ],
  options: {
    "no-browser": { type: "flag", summary: "Print the link, and open nothing" },
    sessions: { type: "flag", summary: "List the browsers that are logged in" },
    end: { type: "text", value: "SESSION", summary: "Log this browser out" },
  },
  positionals: [{ name: "PAGE", summary: "Path of a page, such as /machine or /run/ID", optional: true }],
  async run({ options, positionals: [page], json, screen, env, client }) {
    const server = await client();
    if (options.end !== undefined) {
      const done = await server.call("endSession", { session: options.end });
      return json ? screen.json(done) : screen.print("That browser is logged out.");
    }
    if (options.sessions) {
      const { sessions } = await server.call("listSessions", {});
      if (json) return screen.json({ sessions });
      if (sessions.length === 0) return screen.print("No browser is logged in.");
      const lines = table(sessions, [
        { title: "SESSION", value: ({ id }) => id },
        { title: "STATE", value: ({ state }) => state },
        { title: "ANSWERS", value: ({ mayAnswer }) => (mayAnswer ? "yes" : "no") },
        { title: "ENDS", value: ({ expiresAt }) => until(expiresAt) },
        { title: "BROWSER", value: ({ browser }) => browser ?? "", shrinks: true },
      ]);
      for (const line of lines) screen.print(line);
      return;
    }
    const approver = approverIfAny(env);
    const link = await server.call("openDashboard", {
      ...(page === undefined ? {} : { page: page.startsWith("/") ? page : `/${page}` }),
      ...(approver === undefined ? {} : { approver }),
    });
    if (json) return screen.json(link);
    await showLink(link, { screen, env, quiet: options["no-browser"] });
    if (!link.mayAnswer)
      screen.say("The browser can look and work, and not answer questions: those need a link that a person makes on a terminal.");
  },
});
