import { spawn } from "node:child_process";
import { approverIfAny } from "../approver.ts";
import { command } from "../command.ts";
import { table } from "../table.ts";
import { until } from "../text.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether a browser of this machine would be seen by the person at this terminal. */
function hasScreen(env: Environment): boolean {
  if (!process.stdout.isTTY || env["SSH_CONNECTION"]) return false;
  return process.platform === "darwin" || Boolean(env["DISPLAY"]) || Boolean(env["WAYLAND_DISPLAY"]);
}

/** Resolves whether the machine's own opener took the address. */
function openBrowser(url: string): Promise<boolean> {
  const opener = process.platform === "darwin" ? "open" : "xdg-open";
  const child = spawn(opener, [url], { stdio: "ignore", detached: true });
  child.unref();
  return new Promise((resolve) => {
    child.once("error", () => resolve(false));
    child.once("spawn", () => resolve(true));
  });
}

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
    screen.print(link.url);
    const opened = !options["no-browser"] && hasScreen(env) && (await openBrowser(link.url));
    screen.say(
      opened ? "Opened in your browser. The link works once." : `Open it in a browser: it works once, and ends ${until(link.expiresAt)}.`,
    );
    if (env["SSH_CONNECTION"] && new URL(link.url).hostname === "127.0.0.1") {
      const { port } = new URL(link.url);
      screen.say(`This machine is far away: run \`ssh -L ${port}:127.0.0.1:${port} HOST\` on yours first.`);
    }
    if (!link.mayAnswer)
      screen.say("The browser can look and work, and not answer questions: those need a link that a person makes on a terminal.");
  },
});
