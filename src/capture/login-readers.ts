/** One reader for each kind of file with logins. What they don't understand they leave alone: it does not exist inside. */
import { looksLikeToken } from "./environment.ts";
import type { Login, Read, Unusable } from "./logins.ts";

const NPM_REGISTRY = "registry.npmjs.org";
const CRATES = "crates.io";
/** Stands where a token is the user. */
const NO_PASSWORD = new Set(["", "x", "x-oauth-basic", "x-token-auth"]);
const SHORTEST_TOKEN = 20;

/** A part of a file that says whose login it is: never the login itself. */
const ofUser = (user: string): string => (user === "" ? "password" : `password of ${looksLikeToken(user) ? "a user" : user}`);

export function npm(text: string): Read {
  const lines = text.split("\n");
  const logins: Login[] = [];
  const unusable: Unusable[] = [];
  const own =
    lines.map((line) => /^\s*registry\s*=\s*"?https?:\/\/(?:[^/\s@"]*@)?([^/\s:"]+)/.exec(line)?.[1]).find(Boolean) ?? NPM_REGISTRY;
  for (const [line, content] of lines.entries()) {
    const match = /^(\s*(?:(\/\/[^\s=]+?)\/?:)?(_authToken|_auth|_password)\s*=\s*["']?)([^"'\s;#]+)(["']?)\s*(?:[;#].*)?$/.exec(content);
    if (match === null) continue;
    const [, before = "", place, key = "", raw = "", quote = ""] = match;
    const url = place === undefined ? undefined : URL.parse(`https:${place}/`);
    const host = url?.hostname ?? own;
    const at = {
      host,
      detail: (url?.pathname ?? "").replaceAll(/^\/+|\/+$/g, ""),
      line,
      start: before.length,
      // A comment behind it may hold an older one.
      end: content.length,
    };
    const what = `${key} of ${host}`;
    const decoded = Buffer.from(raw, "base64").toString("utf8");
    const colon = decoded.indexOf(":");
    if (/\$\{[^}]*\}/.test(raw)) unusable.push({ what, reason: "its value is a variable of the environment" });
    else if (key === "_authToken") logins.push({ ...at, what, value: raw, written: (placeholder) => placeholder + quote });
    else if (key === "_password") {
      const names = lines.flatMap((other, index) =>
        new RegExp(`^\\s*${escaped(place ?? "")}/?:?username\\s*=`).test(other) ? [index] : [],
      );
      logins.push({ ...at, what, value: decoded, also: names, written: (placeholder) => base64(placeholder) + quote });
    } else if (colon < 0) unusable.push({ what, reason: "it is no user and password in base64" });
    else {
      const user = decoded.slice(0, colon);
      logins.push({ ...at, what, value: decoded.slice(colon + 1), written: (placeholder) => base64(`${user}:${placeholder}`) + quote });
    }
  }
  const inside = addresses(lines);
  return { logins: [...logins, ...inside.logins], unusable: [...unusable, ...inside.unusable] };
}

export function pip(text: string): Read {
  return addresses(text.split("\n").map((line) => (/^\s*[#;]/.test(line) || /^\s*proxy\s*=/i.test(line) ? "" : line)));
}

export function git(text: string): Read {
  const { logins, unusable } = addresses(text.split("\n"));
  const lines = text.split("\n");
  // The whole line, so that what is not replaced is not there.
  const whole = logins.map((login) => {
    const content = lines[login.line] ?? "";
    return {
      ...login,
      written: (placeholder: string) => content.slice(0, login.start) + login.written(placeholder) + content.slice(login.end).trim(),
    };
  });
  return { logins: whole, unusable };
}

/** Logins in addresses, `https://user:password@host/`. */
function addresses(lines: readonly string[]): Read {
  const logins: Login[] = [];
  const unusable: Unusable[] = [];
  for (const [line, content] of lines.entries()) {
    for (const match of content.matchAll(/\b(https?):\/\/([^/\s@:"']*)(?::([^/\s"']*))?@([^/\s:"'@]+)/gi)) {
      const [, scheme = "", rawUser = "", rawPassword, host = ""] = match;
      const [user, password] = [decode(rawUser), decode(rawPassword ?? "")];
      const isUser = NO_PASSWORD.has(password);
      if (isUser && rawPassword === undefined && !looksLikeToken(user) && user.length < SHORTEST_TOKEN) continue;
      const what = isUser ? `token of ${host}` : `${ofUser(user)} of ${host}`;
      if (scheme.toLowerCase() === "http") unusable.push({ what, reason: "it goes over plain HTTP, where secrets are not put in" });
      else if (!isUser && looksLikeToken(user)) unusable.push({ what, reason: "its user looks like a secret, too" });
      else {
        const start = match.index + scheme.length + 3 + (isUser ? 0 : rawUser.length + 1);
        const end = start + (isUser ? rawUser.length : (rawPassword ?? "").length);
        logins.push({
          host: host.toLowerCase(),
          detail: "",
          what,
          value: isUser ? user : password,
          line,
          start,
          end,
          written: (text) => text,
        });
      }
    }
  }
  return { logins, unusable };
}

export function netrc(text: string): Read {
  const logins: Login[] = [];
  const unusable: Unusable[] = [];
  const words = [...withoutMacros(text).matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(
    ([, quoted, bare]) => quoted?.replaceAll(/\\(.)/g, "$1") ?? bare ?? "",
  );
  let machine: { host: string; login: string } | undefined;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at];
    if (word === "default") machine = { host: "", login: "" };
    else if (word === "machine") machine = { host: (words[(at += 1)] ?? "").toLowerCase(), login: "" };
    else if (word === "login" && machine !== undefined) machine.login = words[(at += 1)] ?? "";
    else if (word === "account") at += 1;
    else if (word === "password" && machine !== undefined) {
      const { host } = machine;
      const value = words[(at += 1)] ?? "";
      // The name may stand behind the password.
      if (words[at + 1] === "login") machine.login = words[at + 2] ?? "";
      const user = machine.login;
      const what = `${ofUser(user)} of ${host || "any host"}`;
      if (host === "") unusable.push({ what, reason: "it is for any host" });
      else {
        const login = user === "" ? "" : ` login ${quotedWord(user)}`;
        logins.push({
          host,
          detail: "",
          what,
          value,
          line: 0,
          start: 0,
          end: 0,
          written: (placeholder) => `machine ${host}${login} password ${placeholder}`,
        });
      }
    }
  }
  return { logins, unusable };
}

/** Without comments, and macros up to the empty line behind them. */
function withoutMacros(text: string): string {
  return text.replaceAll(/^\s*macdef\b[\s\S]*?(?:\n[ \t]*\n|(?![\s\S]))/gm, "").replaceAll(/^\s*#.*$/gm, "");
}

function quotedWord(word: string): string {
  return /[\s"\\]/.test(word) ? `"${word.replaceAll(/["\\]/g, "\\$&")}"` : word;
}

export function cargo(text: string, beside: string): Read {
  const places = new Map(
    tables(`${beside}\n${text}`).flatMap(({ name, key, value }) => (key === "index" ? [[name, hostOf(value)] as const] : [])),
  );
  const logins: Login[] = [];
  const unusable: Unusable[] = [];
  for (const { name, key, value, line } of tables(text)) {
    if (key !== "token") continue;
    const host = name === "crates-io" ? CRATES : (places.get(name) ?? "");
    const what = `token of ${name}`;
    const table = name === "crates-io" ? "[registry]" : `[registries.${JSON.stringify(name)}]`;
    // Which host it is stands in another file: without it the login is read all the same, and can't be kept.
    logins.push({
      host,
      detail: name,
      what,
      value,
      line,
      start: 0,
      end: 0,
      written: (token) => `${table}\ntoken = ${JSON.stringify(token)}`,
    });
  }
  return { logins, unusable };
}

/** `key = "value"` in the tables of registries. */
function tables(text: string): { name: string; key: string; value: string; line: number }[] {
  let name: string | undefined;
  return text.split("\n").flatMap((content, line) => {
    const table = /^\s*\[\s*([^\]]*?)\s*\]\s*(?:#.*)?$/.exec(content)?.[1];
    if (table !== undefined) {
      const registry = /^registries\s*\.\s*"?([A-Za-z0-9_-]+)"?$/.exec(table)?.[1];
      name = table === "registry" ? "crates-io" : registry;
    }
    const [, key, double, single] = /^\s*([a-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*(?:#.*)?$/.exec(content) ?? [];
    return name === undefined || key === undefined ? [] : [{ name, key, value: double?.replaceAll(/\\(.)/g, "$1") ?? single ?? "", line }];
  });
}

function hostOf(index: string): string {
  return URL.parse(index.replace(/^(sparse|registry)\+/, ""))?.hostname ?? "";
}

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

/** As it stands where it is no code of an address. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
