/** Pages that the server itself shows at a preview's origin: the entrance, and what is wrong and what to do. */
import { createHash } from "node:crypto";
import type { OutgoingHttpHeaders } from "node:http";
import { ENTER_PATH } from "../../../base/schema/routes.ts";

const STYLE = `:root{color-scheme:light dark;--text:#1d2127;--muted:#5c6570;--line:#d8dce1;--raised:#fff;--surface:#f6f7f9;--accent:#2257c4}
@media (prefers-color-scheme:dark){:root{--text:#e4e7eb;--muted:#9aa4b0;--line:#343a42;--raised:#1d2127;--surface:#15181c;--accent:#8ab0ff}}
*{box-sizing:border-box}body{margin:0;padding:24px 16px;background:var(--surface);color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{max-width:560px;margin:8vh auto 0;padding:24px;background:var(--raised);border:1px solid var(--line);border-radius:8px;overflow-wrap:anywhere}
h1{margin:0 0 8px;font-size:18px}p{margin:8px 0}.muted{color:var(--muted);font-size:13px}a{color:var(--accent)}
code{padding:2px 6px;background:var(--surface);border:1px solid var(--line);border-radius:4px;font:13px ui-monospace,monospace}`;

/** The ticket stands behind the #, so that it is in no log; it is taken out of the address before anything else. */
const SCRIPT = `const ticket = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
const tell = (title, remedy) => {
  document.querySelector("h1").textContent = title;
  document.querySelector("p").textContent = remedy;
};
const enter = async () => {
  const body = JSON.stringify({ ticket });
  const answer = await fetch(${JSON.stringify(ENTER_PATH)}, { method: "POST", headers: { "content-type": "application/json" }, body });
  const said = await answer.json();
  if (answer.ok) location.replace(location.origin + said.path);
  else tell(said.error.message, said.error.remedy);
};
enter().catch(() => tell("The server could not be reached.", "Open the preview again."));`;

/** Says that the server answered instead of the program inside. */
export const TROUBLE_HEADER = "viv-trouble";
const AGAIN_SECONDS = 2;

/** A page that is read aloud, or that a person is reading, is not loaded anew before there is something else to see. */
const LOOK_SCRIPT = `setInterval(async () => {
  const answer = await fetch(location.href, { cache: "no-store" }).catch(() => undefined);
  if (answer === undefined) return;
  if (answer.headers.has(${JSON.stringify(TROUBLE_HEADER)})) await answer.body?.cancel();
  else location.reload();
}, ${AGAIN_SECONDS * 1000});`;

const SCRIPT_SOURCES = [SCRIPT, LOOK_SCRIPT].map((script) => `'sha256-${createHash("sha256").update(script).digest("base64")}'`).join(" ");

/** Only the dashboard may frame a preview. */
export function ancestorsPolicy(dashboards: readonly string[]): string {
  return ["frame-ancestors 'self'", ...dashboards].join(" ");
}

export function pageHeaders(dashboards: readonly string[]): OutgoingHttpHeaders {
  return {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": `default-src 'none'; style-src 'unsafe-inline'; script-src ${SCRIPT_SOURCES}; connect-src 'self'; base-uri 'none'; form-action 'none'; ${ancestorsPolicy(dashboards)}`,
  };
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** A sentence in which what stands between backticks is to be typed. */
function sentence(text: string): string {
  return escaped(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title><style>${STYLE}</style></head><body><main>${body}</main></body></html>`;
}

export function enterPage(): string {
  return page("Preview", `<h1>Opening the preview …</h1><p class="muted"></p><script>${SCRIPT}</script>`);
}

export interface Trouble {
  readonly title: string;
  readonly remedy: string;
  /** A link to the dashboard. */
  readonly link?: { readonly url: string; readonly text: string };
  /** Whether the page looks again by itself. */
  readonly again?: boolean;
}

export function troublePage({ title, remedy, link, again }: Trouble): string {
  const lines = [
    `<h1>${sentence(title)}</h1>`,
    `<p>${sentence(remedy)}</p>`,
    ...(link === undefined
      ? []
      : [`<p><a href="${escaped(link.url)}" target="_blank" rel="noopener noreferrer">${escaped(link.text)}</a></p>`]),
    ...(again === true
      ? [`<p class="muted">This page looks again every ${AGAIN_SECONDS} seconds.</p><script>${LOOK_SCRIPT}</script>`]
      : []),
  ];
  return page(title, lines.join(""));
}
