/** Previews: a port inside a sandbox at an origin of its own, for browsers that were let in. */
import { z } from "zod";
import { contract, count, Done } from "./contract.ts";
import { SandboxRef } from "./ids.ts";
import { ROUTES } from "./routes.ts";

/** Plain decimal only: a check that compares ports must not miss another spelling of the same port. */
export const Port = count(1, 65_535).describe("Port inside the sandbox.");

/** Where the notebook page is found, in the place of a port. */
export const LAB_DOOR = "lab";

/** One origin of previews: a port of a sandbox, or its notebook page. */
export interface PreviewPlace {
  /** Id, never a name: a later sandbox of the same name must not find what this one left in the browser. */
  readonly sandbox: string;
  /** A port, or the notebook page. */
  readonly door: string;
}

export const PreviewPath = z
  .string()
  .max(2_000)
  .regex(/^\/(?![/\\])[!-~]*$/, "a path begins with one slash, and has neither spaces nor letters outside ASCII")
  .describe("Path and query at which the preview opens.");

/** The name below which each preview has a name of its own. */
export interface PreviewSite {
  readonly scheme: "http" | "https";
  /** With the port, if it is not the usual one. */
  readonly host: string;
}

/** Browsers resolve every name below localhost to loopback; each such name is a site of its own. */
export function localPreviews(port: number): PreviewSite {
  return { scheme: "http", host: `localhost:${port}` };
}

function previewHost({ sandbox, door }: PreviewPlace, { host }: PreviewSite): string {
  return `${door}-${sandbox}.${host}`;
}

export function previewOrigin(place: PreviewPlace, site: PreviewSite): string {
  return `${site.scheme}://${previewHost(place, site)}`;
}

/** All origins of previews, as policies of pages and people write them. */
export function previewOrigins({ scheme, host }: PreviewSite): string {
  return `${scheme}://*.${host}`;
}

const NAME = new RegExp(`^(?<door>[1-9][0-9]{0,4}|${LAB_DOOR})-(?<sandbox>[a-z0-9][a-z0-9-]{0,62})$`);

/** The place that a Host header names, if it is a preview's. Its sandbox may be a name, which opens nothing. */
export function previewPlace(host: string, site: PreviewSite): PreviewPlace | undefined {
  const end = `.${site.host}`;
  if (!host.endsWith(end)) return undefined;
  const { door = "", sandbox = "" } = NAME.exec(host.slice(0, -end.length))?.groups ?? {};
  if (door === "" || (door !== LAB_DOOR && Number(door) > 65_535)) return undefined;
  return { door, sandbox };
}

/** A link that lets one browser in, once. */
const PreviewLink = z
  .object({
    url: z.string().describe("Lets one browser in, once; then it shows the preview."),
    address: z.string().describe("Address of the preview for a browser that is in."),
    expiresAt: z.string().describe("ISO time from which the link lets no browser in."),
  })
  .describe("A preview that can be opened.");

/** What every way to open one takes. */
export const PREVIEW_FIELDS = {
  path: PreviewPath.default("/"),
  frame: z.boolean().default(false).describe("For a frame of the dashboard instead of a tab: browsers keep cookies of both apart."),
  key: z.string().min(1).max(128).optional().describe("The key of a browser's session: the preview ends with that session."),
};

export const PREVIEW_CONTRACTS = {
  listPorts: contract(
    ROUTES.listPorts,
    "Ports inside that have a listener",
    z.strictObject({ sandbox: SandboxRef }),
    z.object({ ports: z.array(z.number().int()).describe("Without those of the sandbox's own parts, in order.") }),
  ),
  openPreview: contract(
    ROUTES.openPreview,
    "Make a link that shows a port inside, at an origin of its own, to one browser; the server listens on loopback from then on",
    z.strictObject({ sandbox: SandboxRef, port: Port, ...PREVIEW_FIELDS }),
    PreviewLink,
    201,
  ),
  openNotebook: contract(
    ROUTES.openNotebook,
    "Start JupyterLab inside, if it does not run, and make a link that shows it to one browser",
    z.strictObject({ sandbox: SandboxRef, ...PREVIEW_FIELDS, path: PreviewPath.default("/lab") }),
    PreviewLink,
    201,
  ),
  closePreviews: contract(
    ROUTES.closePreviews,
    "Close the previews of a sandbox to all browsers; their open connections end, too",
    z.strictObject({ sandbox: SandboxRef }),
    Done,
  ),
} as const;
