/** The dashboard's files: pages without data, the same for every caller. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { previewOrigins, type PreviewSite } from "../../base/schema/preview.ts";
import { PAGES } from "../../base/schema/routes.ts";

const ASSET = /^\/assets\/([A-Za-z0-9_-][A-Za-z0-9._-]*)$/;
const AT_ROOT = new Set([
  "/icon.svg",
  "/icon-180.png",
  "/icon-192.png",
  "/icon-512.png",
  "/icon-maskable-512.png",
  "/badge-96.png",
  "/manifest.webmanifest",
  "/push-worker.js",
]);

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  webmanifest: "application/manifest+json",
  json: "application/json",
};

/** Previews of ports are framed, and nothing else. */
const policyAt = (previews: PreviewSite | undefined): string =>
  [...POLICY, `frame-src ${previews === undefined ? "'none'" : previewOrigins(previews)}`].join("; ");

/**
 * Scripts come from this origin alone, and what a page says in words never becomes one. The terminal and the diff add style elements
 * of their own; under this policy a style loads nothing from elsewhere.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
];

const NEVER_CHANGES = "public, max-age=31536000, immutable";

const NOT_BUILT = `<!doctype html><meta charset="utf-8"><title>Vivarium</title>
<p>The dashboard is not built on this machine. In a checkout, <code>npm run setup</code> builds it; then open this page again.</p>
`;

/** Whether a path is one of the dashboard's pages or files; such a path needs no login. */
export function isPageFile(path: string): boolean {
  const [, first = ""] = path.split("/");
  return path === "/" || AT_ROOT.has(path) || ASSET.test(path) || (PAGES as readonly string[]).includes(first);
}

interface PageRequest {
  /** The Accept-Encoding header. */
  readonly accepted: string;
  /** The port of previews, if the request came by a door that has them. */
  readonly previews: PreviewSite | undefined;
}

interface PageFile {
  readonly type: string;
  readonly caching: string;
  readonly gzip: Buffer;
  readonly brotli: Buffer;
}

export class Pages {
  readonly #folder: string | undefined;
  #files = new Map<string, PageFile>();
  #builtAt = 0;

  /** `folder` holds what Vite built, each file as gzip and as Brotli. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** The answer to a request for a page or one of its files; undefined where there is no such file. */
  answer(path: string, { accepted, previews }: PageRequest): Response | undefined {
    this.#load();
    const asset = ASSET.exec(path)?.[1];
    const name = asset === undefined ? (AT_ROOT.has(path) ? path.slice(1) : "index.html") : `assets/${asset}`;
    const file = this.#files.get(name);
    if (file !== undefined) return send(file, { accepted, previews });
    return name === "index.html"
      ? new Response(NOT_BUILT, { status: 503, headers: headersOf("text/html; charset=utf-8", "no-store", previews) })
      : undefined;
  }

  /** Into memory, so that a page that is open still finds its parts while the package is replaced. A new build is read when it is there. */
  #load(): void {
    if (this.#folder === undefined) return;
    const builtAt = statSync(join(this.#folder, "index.html.br"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (builtAt === 0 || builtAt === this.#builtAt) return;
    const folder = this.#folder;
    const names = [...readdirSync(folder), ...readdirSync(join(folder, "assets")).map((name) => `assets/${name}`)];
    // Parts of an older build stay for pages that began with it.
    for (const name of names) if (name.endsWith(".br")) this.#files.set(name.slice(0, -3), readPage(folder, name.slice(0, -3)));
    this.#builtAt = builtAt;
  }
}

function readPage(folder: string, name: string): PageFile {
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  const caching = name.startsWith("assets/") ? NEVER_CHANGES : "no-cache";
  return { type, caching, gzip: readFileSync(join(folder, `${name}.gz`)), brotli: readFileSync(join(folder, `${name}.br`)) };
}

function headersOf(type: string, caching: string, previews: PreviewSite | undefined): Record<string, string> {
  return {
    "content-type": type,
    "cache-control": caching,
    "content-security-policy": policyAt(previews),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), usb=()",
  };
}

function send({ type, caching, gzip, brotli }: PageFile, { accepted, previews }: PageRequest): Response {
  const encodings = accepted.split(",").map((text) => text.split(";")[0]?.trim());
  const [encoding, body] = encodings.includes("br")
    ? ["br", brotli]
    : encodings.includes("gzip")
      ? ["gzip", gzip]
      : [undefined, gunzipSync(gzip)];
  const headers = {
    ...headersOf(type, caching, previews),
    vary: "accept-encoding",
    ...(encoding === undefined ? {} : { "content-encoding": encoding }),
  };
  return new Response(new Uint8Array(body), { headers });
}
