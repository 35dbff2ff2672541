/** Remotes: which addresses git may push to, and which repository of which forge they mean. */
import { VivError } from "../../base/schema/errors.ts";

export interface ForgeRepository {
  readonly host: string;
  readonly owner: string;
  readonly name: string;
}

const SCHEMES = ["https:", "http:", "ssh:", "file:"];
/** `user@host:path`; git takes a path with a colon for this, too. */
const SCP_LIKE = /^(?:([A-Za-z0-9._~+-]+)@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*):(?!\/\/)(.+)$/;
const MOST_CHARACTERS = 2048;

export function isRemoteName(text: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/.test(text);
}

/** Refuses what is an option, runs a program (`ext::`), or speaks a protocol that is not for pushing. */
export function requireRemoteAddress(address: string): void {
  const refuse = (why: string): never => {
    throw new VivError("invalid_input", `The remote's address is refused: ${why}.`, {
      remedy: "Use an https, http, ssh or file address, or a path.",
    });
  };
  if (address === "" || address.length > MOST_CHARACTERS || /[\p{Cc}\p{Cs}]/u.test(address))
    refuse("it is empty, too long, or holds control characters");
  if (address.startsWith("-")) refuse("git would take it for an option");
  if (/^[^/:]*::/.test(address)) refuse("it names a helper program");
  if (/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(address)) {
    const url = URL.parse(address);
    if (url === null || !SCHEMES.includes(url.protocol)) return refuse("its protocol is none of https, http, ssh and file");
    if (url.protocol === "ssh:" && /^(?:-|%2d)/i.test(url.username || url.hostname)) refuse("ssh would take its host for an option");
  } else if (!address.startsWith("/") && !address.startsWith(".") && /^[^/]*:/.test(address) && !SCP_LIKE.test(address)) {
    refuse("it is no address that is known");
  }
}

/** Owner and name on the host that the address means; undefined for a path, or for another depth of folders. */
export function repositoryOf(address: string): ForgeRepository | undefined {
  const { host, path } = hostAndPath(address);
  const [, owner, name] = /^\/?([A-Za-z0-9][\w.-]*)\/([\w.-]+?)(?:\.git)?\/?$/.exec(path) ?? [];
  if (host === "" || owner === undefined || name === undefined || /^\.+$/.test(name)) return undefined;
  return { host, owner, name };
}

/** The folder that an address is, as git reads it; undefined where it is on another machine. */
export function folderOf(address: string): string | undefined {
  // Not by URL, which takes `..` out of the path: git walks it as it stands.
  if (address.startsWith("file:")) return decoded(address.replace(/^file:(\/\/[^/]*)?/, "")) || "/";
  return address.includes("://") || (!/^[/.]/.test(address) && /^[^/]*:/.test(address)) ? undefined : address;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Git takes a percent sign that begins no code as it is.
    return text;
  }
}

function hostAndPath(address: string): { host: string; path: string } {
  const nothing = { host: "", path: "" };
  if (address.includes("://")) {
    const url = URL.parse(address);
    return url === null || url.protocol === "file:" ? nothing : { host: url.hostname.toLowerCase(), path: url.pathname };
  }
  if (/^[/.]/.test(address)) return nothing;
  const [, , host = "", path = ""] = SCP_LIKE.exec(address) ?? [];
  return { host: host.toLowerCase(), path };
}
