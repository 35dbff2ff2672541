/** Links for a browser: printed, and opened where there is a screen. */
import { spawn } from "node:child_process";
import type { Screen } from "./screen.ts";
import { until } from "./text.ts";

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

/** `quiet`: nothing is opened. */
export async function showLink(
  { url, expiresAt }: { readonly url: string; readonly expiresAt: string },
  { screen, env, quiet }: { readonly screen: Screen; readonly env: Environment; readonly quiet: boolean | undefined },
): Promise<void> {
  screen.print(url);
  const opened = quiet !== true && hasScreen(env) && (await openBrowser(url));
  screen.say(
    opened ? "Opened in your browser. The link works once." : `Open it in a browser: it works once, and ends ${until(expiresAt)}.`,
  );
  const { hostname, port } = new URL(url);
  if (!env["SSH_CONNECTION"] || !(hostname === "127.0.0.1" || hostname.endsWith(".localhost"))) return;
  screen.say(`This machine is far away: run \`ssh -L ${port}:127.0.0.1:${port} HOST\` on yours first.`);
}
