/** Where the server listens besides its socket, and how it is protected there. Without zod, so that the command line starts without it. */
import { VivError } from "../schema/errors.ts";
import { portNumber } from "../schema/numbers.ts";

/** As the flags of `viv up` or the user's config say it. */
export interface ListenWords {
  /** PORT, or ADDRESS:PORT. */
  readonly address?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly selfSigned?: boolean | undefined;
  /** Address of the proxy or tunnel that does TLS. */
  readonly behindProxy?: string | undefined;
  /** Address that browsers use, where it is not that of the certificate. */
  readonly url?: string | undefined;
  /** Addresses of previews: https://*.NAME, or https://*.NAME:PORT. */
  readonly previews?: string | undefined;
}

export type ListenTls = { readonly cert: string; readonly key: string } | "self-signed" | "proxy" | "none";

export interface ListenChoice {
  readonly host: string;
  readonly port: number;
  readonly tls: ListenTls;
  /** Origin that browsers use, where it was named. */
  readonly origin: string | undefined;
  /** Name below which previews have their names, where it was given. */
  readonly previews: { readonly name: string; readonly port: string } | undefined;
}

const TLS_REMEDY =
  "Give a certificate (--tls-cert FILE --tls-key FILE), let the server make one (--self-signed), or name the tunnel that does TLS (--behind-proxy https://NAME).";

function refuse(message: string, remedy?: string): never {
  throw new VivError("usage", message, remedy === undefined ? {} : { remedy });
}

export function isLoopbackHost(host: string): boolean {
  return /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/.test(host);
}

/** Undefined where nothing says that it should listen. */
export function listenChoice(words: ListenWords): ListenChoice | undefined {
  const { address, cert, key, selfSigned = false, behindProxy, url, previews } = words;
  if (address === undefined) {
    if ([cert, key, behindProxy, url, previews].some((one) => one !== undefined) || selfSigned)
      refuse("TLS and addresses of browsers are for a server that listens.", "Say where: --listen PORT or --listen ADDRESS:PORT.");
    return undefined;
  }
  const place = placeOf(address);
  const tls = tlsOf(words);
  if (tls === "none" && !isLoopbackHost(place.host))
    refuse(`Other computers reach ${place.host}: without TLS, the server does not listen there.`, TLS_REMEDY);
  if (tls === "none" && url !== undefined) refuse("An address of browsers is for a server with TLS.", TLS_REMEDY);
  if (tls === "none" && previews !== undefined)
    refuse("Addresses of previews are for a server with TLS; without it, previews have names below localhost.", TLS_REMEDY);
  return { ...place, tls, origin: originOf(behindProxy ?? url), previews: previewsOf(previews) };
}

function placeOf(address: string): { readonly host: string; readonly port: number } {
  const [, six, four, text = ""] = /^(?:(?:\[([^\]]+)\]|([^:[\]]+)):)?([^:]+)$/.exec(address) ?? [];
  const port = portNumber(text);
  const host = six ?? four ?? "127.0.0.1";
  if (port === undefined || !/^[\w.:-]+$/.test(host))
    refuse(
      `${JSON.stringify(address)} is no place to listen at.`,
      "Give a port, ADDRESS:PORT or [ADDRESS]:PORT; ports go from 1 to 65535.",
    );
  return { host, port };
}

function tlsOf({ cert, key, selfSigned = false, behindProxy }: ListenWords): ListenTls {
  if ((cert === undefined) !== (key === undefined)) refuse("A certificate needs its key, and a key its certificate.", TLS_REMEDY);
  const own = cert === undefined || key === undefined ? [] : [{ cert, key }];
  const ways: ListenTls[] = [
    ...own,
    ...(selfSigned ? ["self-signed" as const] : []),
    ...(behindProxy === undefined ? [] : ["proxy" as const]),
  ];
  if (ways.length > 1) refuse("A certificate, one that the server makes, and a proxy that does TLS exclude each other.", TLS_REMEDY);
  return ways[0] ?? "none";
}

function originOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url?.protocol !== "https:" || url.pathname !== "/" || url.search !== "" || url.hash !== "" || url.username !== "")
    refuse(`${JSON.stringify(text)} is no address of a dashboard.`, "Give https://NAME or https://NAME:PORT, without a path.");
  return url.origin;
}

function previewsOf(text: string | undefined): ListenChoice["previews"] {
  if (text === undefined) return undefined;
  const [, name, port = ""] = /^https:\/\/\*\.((?:[a-z0-9-]+\.)*[a-z0-9-]+)(:[1-9][0-9]{0,4})?\/?$/.exec(text.toLowerCase()) ?? [];
  if (name === undefined || /^[\d.]+$/.test(name))
    refuse(
      `${JSON.stringify(text)} is no address of previews.`,
      "Give https://*.NAME or https://*.NAME:PORT. An address of numbers has no names below it.",
    );
  return { name, port: port.slice(1) };
}
