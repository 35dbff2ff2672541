/** Who may look at a preview: a browser that was let in, with a request that begins at the preview itself or by a person's hand. */
import type { IncomingMessage } from "node:http";
import { VivError } from "../../../base/schema/errors.ts";
import type { PreviewPlace, PreviewSite } from "../../../base/schema/preview.ts";

/** Whom a link let in. */
export interface PreviewAccess {
  /** Uses up what a link carries, at the origin that it is for. */
  enter(secret: string, place: PreviewPlace): Promise<{ readonly cookie: string; readonly path: string; readonly frame: boolean }>;
  /** The browser that one of these cookies proves to be in; the signal aborts when it is out. */
  check(cookies: readonly string[], place: PreviewPlace): PreviewVisitor | undefined;
}

export interface PreviewVisitor {
  readonly frame: boolean;
  readonly ending: AbortSignal;
}

/** Browsers keep cookies of tabs and of frames of the dashboard apart; so do the names. */
const TAB_COOKIE = "viv-preview";
const FRAME_COOKIE = "viv-frame";

/** With TLS, names that no page of another host can set for this one: previews are below one name, and may be below the dashboard's. */
const BOUND = "__Host-";

/** Names that are the server's own: no program inside sees such a cookie, or sets one. */
export function isOwnCookie(name: string): boolean {
  return /^(?:__(?:host|secure)-)?viv-/i.test(name);
}

export function cookiePairs(request: IncomingMessage): readonly (readonly [name: string, value: string])[] {
  return (request.headers.cookie ?? "").split(";").flatMap((text) => {
    const pair = text.trim();
    if (pair === "") return [];
    const sign = pair.indexOf("=");
    return [[sign < 0 ? "" : pair.slice(0, sign), sign < 0 ? pair : pair.slice(sign + 1)] as const];
  });
}

/**
 * In a frame of the dashboard the preview is of another site: only a cookie that says so is kept there, and it belongs to that frame's
 * page alone (Partitioned). Browsers take names below localhost as safe, so that Secure holds over plain HTTP.
 */
export function entranceCookie(cookie: string, frame: boolean, { scheme }: PreviewSite): string {
  const [bound, secure] = scheme === "https" ? [BOUND, " Secure;"] : ["", ""];
  return frame
    ? `${bound}${FRAME_COOKIE}=${cookie}; HttpOnly; Secure; SameSite=None; Partitioned; Path=/`
    : `${bound}${TAB_COOKIE}=${cookie}; HttpOnly;${secure} SameSite=Lax; Path=/`;
}

export function visitorOf(
  access: PreviewAccess,
  request: IncomingMessage,
  place: PreviewPlace,
  { scheme }: PreviewSite,
): PreviewVisitor | undefined {
  const names = [TAB_COOKIE, FRAME_COOKIE].map((name) => (scheme === "https" ? `${BOUND}${name}` : name));
  const own = cookiePairs(request).filter(([name]) => names.includes(name));
  return access.check(
    own.map(([, value]) => value),
    place,
  );
}

/** A person opens the address, or follows a link to it, in a tab of its own. */
function isVisit({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
}

/**
 * Pages of other origins, other previews among them, reach no program inside: a browser would send the cookie along with some of their
 * requests. `origin` is the preview's own.
 */
export function checkPreviewSource(request: IncomingMessage, origin: string, switches: boolean): void {
  const { origin: said, "sec-fetch-site": site } = request.headers;
  const refused = new VivError("forbidden_origin", "The request comes from a page of another origin.", {
    remedy: "Open the preview in a tab of its own; a page of another port reaches it through its own server.",
  });
  if (switches) {
    if (said !== origin) throw refused;
    return;
  }
  if (site !== undefined) {
    if (site === "same-origin" || site === "none" || isVisit(request)) return;
    throw refused;
  }
  const reads = request.method === "GET" || request.method === "HEAD";
  if (said === undefined ? !reads : said !== origin) throw refused;
}
