/** The way in by TCP: what is bound, who does TLS, and the addresses that callers may name. */
import { X509Certificate } from "node:crypto";
import { readFileSync, rmSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { isLoopbackHost, type ListenChoice } from "../../base/config/listen-choice.ts";
import { makePrivateFile, readPrivateFile } from "../../base/host/private-file.ts";
import { VivError } from "../../base/schema/errors.ts";
import { localPreviews, previewOrigins, previewPlace, type PreviewSite } from "../../base/schema/preview.ts";
import type { ServerAccess } from "../../base/schema/server.ts";
import type { TcpAccess } from "./guard.ts";

interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** Made ready before anything is bound. */
export interface Door {
  readonly host: string;
  readonly port: number;
  readonly tls: TlsFiles | undefined;
  /** Files that hold these, which may be renewed while the server runs. */
  readonly files: { readonly cert: string; readonly key: string } | undefined;
  /** Whether a proxy does TLS, and what it says of requests is believed. */
  readonly isBehindProxy: boolean;
  readonly isSelfSigned: boolean;
  /** Addresses of the dashboard, once the port is known. The first one is told to people. */
  origins(port: number): readonly string[];
  /** Where previews have their names, once the port is known; undefined where they have none. */
  previews(port: number): PreviewSite | undefined;
}

/** On this machine alone, without TLS. */
export function loopbackDoor(port: number, host = "127.0.0.1"): Door {
  const plain = { tls: undefined, files: undefined, isBehindProxy: false, isSelfSigned: false };
  const names = [...new Set([host === "localhost" ? "127.0.0.1" : host, "127.0.0.1", "localhost"])];
  return { ...plain, host, port, origins: (bound) => names.map((name) => `http://${inAddress(name)}:${bound}`), previews: localPreviews };
}

/** `home` is the state folder, where a certificate that the server makes is kept. */
export async function doorOf(choice: ListenChoice, home: string): Promise<Door> {
  const { host, port, tls, origin } = choice;
  const named = origin === undefined ? [] : [origin];
  if (tls === "none") return loopbackDoor(port, host);
  if (tls === "proxy")
    return apart({
      host,
      port,
      tls: undefined,
      files: undefined,
      isBehindProxy: true,
      isSelfSigned: false,
      origins: () => named,
      previews: () => siteOf(choice, 443),
    });
  const wild = choice.previews === undefined ? [] : [`*.${choice.previews.name}`];
  const files = tls === "self-signed" ? await selfSigned(home, [...ownNames(host), ...wild]) : tls;
  const read = readTls(files);
  if (!isGoodFor(read.cert, wild))
    throw new VivError("config_invalid", `The certificate ${files.cert} is not good for ${wild.join("")}, where previews are to be.`, {
      remedy: "Use a certificate that names it, too, or leave --previews out.",
    });
  const names = tls === "self-signed" ? ownNames(host) : namesOf(read.cert);
  if (names.length + named.length === 0)
    throw new VivError("config_invalid", `The certificate ${files.cert} names no host that a browser could ask for.`, {
      remedy: "Say which address browsers use: --url https://NAME:PORT.",
    });
  const origins = (bound: number): string[] => [
    ...new Set([...named, ...names.map((name) => new URL(`https://${inAddress(name)}:${bound}`).origin)]),
  ];
  const isSelfSigned = tls === "self-signed";
  return apart({ host, port, tls: read, files, isBehindProxy: false, isSelfSigned, origins, previews: (bound) => siteOf(choice, bound) });
}

/** At the port of the server, unless another one was named. */
function siteOf({ previews }: ListenChoice, bound: number): PreviewSite | undefined {
  if (previews === undefined) return undefined;
  const { host } = new URL(`https://${previews.name}:${previews.port === "" ? bound : previews.port}`);
  return { scheme: "https", host };
}

/** A name that could be the dashboard's and a preview's would give one the cookies of the other. */
function apart(door: Door): Door {
  const site = door.previews(door.port);
  const both = site && door.origins(door.port).find((origin) => previewPlace(new URL(origin).host, site) !== undefined);
  if (both === undefined) return door;
  throw new VivError("config_invalid", `The dashboard's address ${both} could be a preview's.`, {
    remedy: "Choose another name for --previews.",
  });
}

function inAddress(name: string): string {
  return name.includes(":") ? `[${name}]` : name;
}

/** Throws unless TLS can be spoken with them. */
export function readTls({ cert, key }: { readonly cert: string; readonly key: string }): TlsFiles {
  try {
    const read = { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
    createSecureContext(read);
    const { validTo } = new X509Certificate(read.cert);
    if (Date.parse(validTo) < Date.now()) throw new Error(`it ended on ${validTo}`);
    return read;
  } catch (error) {
    throw new VivError(
      "config_invalid",
      `The certificate ${cert} can't be used with the key ${key}: ${error instanceof Error ? error.message : String(error)}.`,
      {
        cause: error,
        remedy: "Both are files in PEM; the certificate stands first in its file, then those that vouch for it.",
      },
    );
  }
}

/** When files were renewed: their times as one text. */
export function stampOf({ cert, key }: { readonly cert: string; readonly key: string }): string {
  return [cert, key].map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0).join(" ");
}

/** Names and addresses of a certificate. One for a whole domain says nothing about where this server is. */
function namesOf(cert: string): string[] {
  const found = [...(new X509Certificate(cert).subjectAltName ?? "").matchAll(/(?:DNS|IP Address):([^\s,"]+)/g)].map(
    ([, name = ""]) => name,
  );
  return found
    .filter((name) => !name.includes("*"))
    .map((name) => (isIP(name) === 6 ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name.toLowerCase()));
}

/** What other computers may call this one by. */
function ownNames(host: string): string[] {
  if (host !== "0.0.0.0" && host !== "::") return host === "localhost" ? ["localhost", "127.0.0.1"] : [host];
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const outer = addresses.filter(
    ({ internal, address, family }) => !internal && !address.startsWith("fe80:") && (family === "IPv4" || host === "::"),
  );
  const own = hostname().toLowerCase();
  return [...outer.map(({ address }) => address), ...(/^[a-z0-9.-]+$/.test(own) ? [own] : []), "localhost", "127.0.0.1"];
}

const LEAST_LEFT_MS = 30 * 24 * 3_600_000;

/** The certificate of before, as long as it is good for all of these names: browsers and people know it by its fingerprint. */
async function selfSigned(home: string, names: readonly string[]): Promise<{ cert: string; key: string }> {
  const files = { cert: join(home, "tls-cert"), key: join(home, "tls-key") };
  const kept = [readPrivateFile(files.cert), readPrivateFile(files.key)];
  if (kept.every((text) => text !== undefined) && isGood(kept[0] ?? "", names)) return files;
  const { makeSelfSigned } = await import("../../rules/secrets/certificates.ts");
  const { cert, key } = makeSelfSigned(names);
  for (const [file, text] of [
    [files.cert, cert],
    [files.key, key],
  ] as const) {
    rmSync(file, { force: true });
    makePrivateFile(file, text.trim());
  }
  return files;
}

function isGood(cert: string, names: readonly string[]): boolean {
  const read = new X509Certificate(cert);
  return isGoodFor(cert, names) && Date.parse(read.validTo) - Date.now() > LEAST_LEFT_MS;
}

/** Whether browsers take a certificate for all of these names; `*.` stands for any name of one part below. */
function isGoodFor(cert: string, names: readonly string[]): boolean {
  const read = new X509Certificate(cert);
  return names.every((name) => (isIP(name) === 0 ? read.checkHost(name.replace(/^\*/, "1-any")) : read.checkIP(name)) !== undefined);
}

/** What it opens, for people. */
export function accessOf(door: Door, port: number): ServerAccess {
  const { host, tls, isBehindProxy, isSelfSigned } = door;
  const sites = door.previews(port);
  return {
    address: `${inAddress(host)}:${port}`,
    origins: [...door.origins(port)],
    from: isLoopbackHost(host) ? "this machine" : host === "0.0.0.0" || host === "::" ? "every network" : "the network of this address",
    tls: isBehindProxy ? "proxy" : tls === undefined ? "none" : isSelfSigned ? "self-signed" : "certificate",
    previews: sites === undefined ? null : previewOrigins(sites),
    fingerprint: tls === undefined ? null : new X509Certificate(tls.cert).fingerprint256,
  };
}

/** What a request by this door has to show. */
export function askedBy(
  door: Door,
  port: number,
): Pick<TcpAccess, "origins" | "behindProxy" | "cookie" | "isSecure" | "isStrict" | "previews"> {
  const origins = door.origins(port);
  const isSecure = door.isBehindProxy || door.tls !== undefined;
  return {
    origins,
    behindProxy: door.isBehindProxy
      ? [...new Set([door.host, "127.0.0.1", "localhost"])].map((name) => `${inAddress(name)}:${port}`)
      : undefined,
    // Cookies go to all ports of an address, so each has its own name. With TLS, it is one that no other host and no plain HTTP can set.
    cookie: `${isSecure ? "__Host-" : ""}viv-session-${port}`,
    isSecure,
    previews: door.previews(port),
    // It holds for all ports of a host: where another program may speak plain HTTP there, it would shut that one out.
    isStrict: isSecure && !door.isSelfSigned && new URL(origins[0] ?? "").port === "",
  };
}
