/** An .npmrc, read by npm's own parser. */
import { decode, safe } from "ini";
import { isLoginKey, readAddresses, withoutLogin } from "./addresses.ts";
import { looksLikeToken } from "./secret-values.ts";
import type { Login, Read } from "./logins.ts";

const NPM_REGISTRY = "registry.npmjs.org";
const LOGIN = /^(?:(\/\/.+?)\/?:)?(_authToken|_auth|_password)$/;
const USER = /^(\/\/.+:)?username$/;

interface Entry {
  readonly key: string;
  readonly value: string;
  /** How its value is written where it is one of several. */
  readonly list: boolean;
}

/** How one entry is shown with these placeholders; undefined if it is not. */
interface Part extends Read {
  readonly entry: Entry;
  /** Shown only where the password of this place is. */
  readonly needs?: string;
}

export function npm(text: string): Read {
  const entries = entriesOf(text);
  const registry = entries.find(({ key }) => key === "registry")?.value ?? "";
  const own = URL.parse(registry)?.host || NPM_REGISTRY;
  const parts = entries.map((entry) => partOf(entry, own));
  return {
    logins: parts.flatMap(({ logins }) => logins),
    unusable: parts.flatMap(({ unusable }) => unusable),
    shown: (placeholders) => show(parts, placeholders),
  };
}

function show(parts: readonly Part[], placeholders: readonly (string | undefined)[]): string {
  const given = [...placeholders];
  const shown = parts.map((part) => ({ part, value: part.shown(given.splice(0, part.logins.length)) }));
  const passwords = new Set(shown.flatMap(({ part, value }) => (value === undefined ? [] : [part.entry.key])));
  return shown
    .filter(({ part, value }) => value !== undefined && (part.needs === undefined || passwords.has(part.needs)))
    .map(({ part: { entry }, value = "" }) => `${entry.key}${entry.list ? "[]" : ""}=${written(value)}\n`)
    .join("");
}

/** As it is where npm reads it so: not every program that reads an .npmrc knows quotes. */
function written(value: string): string {
  return String(decode(`key=${value}`)["key"]) === value ? value : safe(value);
}

/** Sections, which npm does not look at, are left out. */
function entriesOf(text: string): Entry[] {
  return Object.entries(decode(text) as Record<string, unknown>).flatMap(([key, value]): Entry[] => {
    if (Array.isArray(value)) return value.map((each) => ({ key, value: String(each), list: true }));
    return typeof value === "object" && value !== null ? [] : [{ key, value: String(value), list: false }];
  });
}

const HIDDEN = { logins: [], unusable: [], shown: () => undefined };

function partOf(entry: Entry, own: string): Part {
  const { key, value } = entry;
  const place = key.replace(/^\/\//, "https://");
  // Its own address may hold a login.
  if (withoutLogin(place) !== place || looksLikeToken(key)) return { entry, ...HIDDEN };
  const [, of, kind] = LOGIN.exec(key) ?? [];
  if (kind !== undefined) return { entry, ...loginOf(value, kind, of, own) };
  if (USER.test(key)) return { entry, ...HIDDEN, shown: () => value, needs: key.replace(/username$/, "_password") };
  return { entry, ...(isLoginKey(key) ? HIDDEN : readAddresses(value)) };
}

function loginOf(value: string, kind: string, place: string | undefined, own: string): Read {
  const url = place === undefined ? undefined : URL.parse(`https:${place}/`);
  const host = url === undefined ? own : (url?.host ?? "");
  const what = `${kind} of ${host}`;
  const at = { host, detail: (url?.pathname ?? "").replaceAll(/^\/+|\/+$/g, ""), what };
  const left = (reason: string): Read => ({ ...HIDDEN, unusable: [{ what, reason }] });
  const kept = (login: Login, fill: (placeholder: string) => string): Read => ({
    logins: [login],
    unusable: [],
    shown: ([placeholder]) => (placeholder === undefined ? undefined : fill(placeholder)),
  });
  if (/\$\{[^}]*\}/.test(value)) return left("its value is a variable of the environment");
  if (kind === "_authToken") return kept({ ...at, value }, (placeholder) => placeholder);
  const decoded = Buffer.from(value, "base64").toString("utf8");
  if (kind === "_password") return kept({ ...at, value: decoded }, base64);
  const colon = decoded.indexOf(":");
  if (colon < 0) return left("it is no user and password in base64");
  return kept({ ...at, value: decoded.slice(colon + 1) }, (placeholder) => base64(`${decoded.slice(0, colon)}:${placeholder}`));
}

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}
