/** Links that let a browser in to a preview: a port inside, or the notebook page. */
import { text } from "node:stream/consumers";
import type { Previews } from "../../rules/sessions/previews.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { requireLive } from "../../sandbox/shared/state.ts";
import { parseListening } from "../../base/host/listening.ts";
import { GATEWAY_PORT } from "../../base/schema/gateway.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { PROXY_PORT } from "../../base/schema/network.ts";
import { LAB_DOOR, previewOrigin, type PreviewPlace } from "../../base/schema/preview.ts";
import { ENTER_PATH } from "../../base/schema/routes.ts";
import type { OutputOf } from "../../base/schema/contracts.ts";
import type { DashboardDoor } from "./dashboard.ts";
import type { Handlers } from "./operations.ts";

/** Listeners that each sandbox has from its start: the gateway, the proxy, and the resolver of names. */
const OWN_PORTS = new Set([GATEWAY_PORT, PROXY_PORT, 53]);
const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];

interface PreviewParts {
  readonly parts: Parts;
  readonly sandboxes: Sandboxes;
  readonly previews: Previews;
  readonly door: DashboardDoor;
}

interface Asked {
  readonly path: string;
  readonly frame: boolean;
  readonly key?: string | undefined;
}

/** Behind the #, the ticket is in no log, and programs that look at links to show them do not use it up. */
async function linkTo(
  { previews, door }: PreviewParts,
  place: PreviewPlace,
  { path, frame, key }: Asked,
): Promise<OutputOf<"openPreview">> {
  const { previews: site } = await door.opened();
  if (site === undefined)
    throw new VivError("unsupported", "A preview needs a name of its own, and this server with TLS was given none for them.", {
      remedy: `Start it with --previews https://*.NAME, a name whose DNS record and certificate cover all names below it; or run \`viv port SANDBOX ${place.door}\` on the server's machine.`,
    });
  const origin = previewOrigin(place, site);
  const { secret, expiresAt } = previews.ticket({ place, path, frame }, key);
  return { url: `${origin}${ENTER_PATH}#${secret}`, address: `${origin}${path}`, expiresAt };
}

/** As the kernel tells it to a process inside. A page that looks for ports does not count as a use of the sandbox. */
async function portsOf({ parts, sandboxes }: PreviewParts, reference: string): Promise<number[]> {
  const row = await sandboxes.find(reference);
  requireLive(row);
  const { walls } = parts.live.require(row);
  // Without walls, the tables would be the machine's own.
  if (!row.walled) return [];
  const tables = TABLES.map(async (table) => {
    const { body } = await walls.files.read(table, row.user, { offset: 0, length: LIMITS.maxPortTableBytes });
    return parseListening(await text(body));
  });
  const ports = new Set((await Promise.all(tables)).flat());
  return [...ports].filter((port) => !OWN_PORTS.has(port)).toSorted((one, other) => one - other);
}

export function previewHandlers(parts: PreviewParts): Pick<Handlers, "listPorts" | "openPreview" | "openNotebook" | "closePreviews"> {
  const { sandboxes, previews } = parts;
  return {
    listPorts: async ({ sandbox }) => ({ ports: await portsOf(parts, sandbox) }),
    openPreview: async ({ sandbox, port, ...asked }) => {
      const { id } = await sandboxes.find(sandbox);
      return linkTo(parts, { sandbox: id, door: String(port) }, asked);
    },
    openNotebook: async ({ sandbox, ...asked }) => {
      const row = await sandboxes.find(sandbox);
      await sandboxes.notebooks.openLab(row);
      return linkTo(parts, { sandbox: row.id, door: LAB_DOOR }, asked);
    },
    closePreviews: async ({ sandbox }) => (await previews.close((await sandboxes.find(sandbox)).id), { ok: true }),
  };
}
