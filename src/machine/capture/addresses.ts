/** Addresses with logins in them, taken apart as URLs are. What can be read in more than one way is not shown at all. */
import { looksLikeToken } from "./secret-values.ts";
import type { Login, Read, Unusable } from "./logins.ts";

/** Those of the web also with one slash, or with others: some programs take that for the usual two. */
const ADDRESS = /(?:(?<![a-z0-9+.-])[a-z0-9+.-]+:\/\/|(?:https?|ftps?|wss?):[\\/])[^\s"'`<>]*/gi;
/** Schemes whose user is the name of an account of a machine. */
const NAMED_USER = /^(ssh|sftp|rsync|git\+ssh|svn\+ssh|ssh\+git)$/;
/** Stands where a token is the user. */
const NO_PASSWORD = new Set(["", "x", "x-oauth-basic", "x-token-auth"]);
const SHORTEST_TOKEN = 20;
const LOGIN_KEY = /auth|token|password|passwd|secret|username|email|otp|cert|key|cookie|credential/i;

/** Whether a setting of this name is a login, whatever its value. */
export function isLoginKey(key: string): boolean {
  return LOGIN_KEY.test(key);
}

interface Address {
  readonly scheme: string;
  readonly host: string;
  /** As they are written. */
  readonly user: string;
  readonly password: string | undefined;
  /** With this in place of user and password, as it is written before the `@`. */
  readonly with: (login: string) => string;
}

/** Undefined for what is no address, or where it can't be told which part of it is the login. */
function takeApart(text: string): Address | undefined {
  const [, scheme = "", authority = "", rest = ""] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#\\]*)(.*)$/is.exec(text) ?? [];
  const at = authority.lastIndexOf("@");
  const place = authority.slice(at + 1);
  const url = URL.parse(text);
  const isFile = scheme.toLowerCase() === "file" && authority === "";
  if (url === null || (place === "" && !isFile)) return undefined;
  // A password with a slash in it, which no program reads as one, looks like a port or a host, and a path. `/@scope` is a path.
  if (rest.replaceAll("/@", "/").includes("@") && authority.includes(":")) return undefined;
  const login = authority.slice(0, Math.max(at, 0));
  const colon = login.indexOf(":");
  return {
    scheme: scheme.toLowerCase(),
    host: url.host.toLowerCase(),
    user: colon < 0 ? login : login.slice(0, colon),
    password: colon < 0 ? undefined : login.slice(colon + 1),
    with: (other) => `${scheme}://${other === "" ? "" : `${other}@`}${place}${rest}`,
  };
}

/** A text without the logins in its addresses; undefined where one can't be told apart. ssh's user is no secret. */
export function withoutLogin(text: string): string | undefined {
  return readAddresses(text).shown([]);
}

/** Whether a text has an address with a password in it, or one in which that can't be told; or is one without its scheme. */
export function holdsLogin(text: string): boolean {
  const addresses = text.match(ADDRESS) ?? [];
  const isSecret = (address: string): boolean => {
    const found = takeApart(address);
    return found === undefined ? address.includes("@") : (found.password ?? "") !== "";
  };
  return addresses.some(isSecret) || WHOLE_LOGIN.test(text);
}

/** `user:password@host` without a scheme, also as Go writes it, `user:password@tcp(host)`. */
const WHOLE_LOGIN = /^[^\s:/@]{1,128}:[^\s/@][^\s@]{0,256}@(?:[a-z]+\(|[A-Za-z0-9.-]+(?::\d+)?(?:\/|$))/;

/** The same among other words. */
function hasBareLogin(text: string): boolean {
  return text.split(/\s+/).some((word) => {
    const colon = word.indexOf(":", 1);
    return colon > 0 && word.lastIndexOf("@") > colon;
  });
}

interface Piece {
  readonly address: Address;
  /** Where a login that can be kept stands in it, if one does. */
  readonly kept?: "user" | "password";
}

/** The logins in the addresses of a text. */
export function readAddresses(text: string): Read {
  const logins: Login[] = [];
  const unusable: Unusable[] = [];
  const pieces: (string | Piece | undefined)[] = [];
  let end = 0;
  for (const match of text.matchAll(ADDRESS)) {
    pieces.push(text.slice(end, match.index));
    end = match.index + match[0].length;
    const address = takeApart(match[0]);
    const found = address === undefined ? undefined : loginOf(address);
    if (found?.login !== undefined) logins.push(found.login);
    if (found?.unusable !== undefined) unusable.push(found.unusable);
    pieces.push(address === undefined ? undefined : { address, ...(found?.kept === undefined ? {} : { kept: found.kept }) });
  }
  pieces.push(text.slice(end));
  return { logins, unusable, shown: (placeholders) => put(pieces, placeholders) };
}

function put(pieces: readonly (string | Piece | undefined)[], placeholders: readonly (string | undefined)[]): string | undefined {
  const isReadable = pieces.every((piece) => piece !== undefined && (typeof piece !== "string" || !hasBareLogin(piece)));
  if (!isReadable) return undefined;
  const given = placeholders[Symbol.iterator]();
  const stripped: string[] = [];
  const shown = pieces.map((piece) => {
    if (piece === undefined || typeof piece === "string") {
      stripped.push(piece ?? "");
      return piece ?? "";
    }
    const { address, kept } = piece;
    const without = address.with(NAMED_USER.test(address.scheme) ? address.user : "");
    stripped.push(without);
    const placeholder = kept === undefined ? undefined : given.next().value;
    if (placeholder === undefined) return without;
    const password = address.password === undefined ? "" : `:${address.password}`;
    return address.with(kept === "user" ? placeholder + password : `${address.user}:${placeholder}`);
  });
  // Something else in it may be secret, too.
  return looksLikeToken(stripped.join("")) ? undefined : shown.join("");
}

/** A part of a file that says whose login it is: never the login itself. */
export const ofUser = (user: string): string => (user === "" ? "password" : `password of ${looksLikeToken(user) ? "a user" : user}`);

function loginOf(address: Address): { login?: Login; kept?: "user" | "password"; unusable?: Unusable } {
  const { scheme, host } = address;
  if (scheme !== "http" && scheme !== "https") return {};
  const [user, password] = [decoded(address.user), decoded(address.password ?? "")];
  const isUser = NO_PASSWORD.has(password);
  if (isUser && address.password === undefined && !looksLikeToken(user) && user.length < SHORTEST_TOKEN) return {};
  const what = isUser ? `token of ${host}` : `${ofUser(user)} of ${host}`;
  if (scheme === "http") return { unusable: { what, reason: "it goes over plain HTTP, where secrets are not put in" } };
  if (!isUser && looksLikeToken(user)) return { unusable: { what, reason: "its user looks like a secret, too" } };
  return { kept: isUser ? "user" : "password", login: { host, detail: "", what, value: isUser ? user : password } };
}

/** As it stands where it is no code of an address. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
