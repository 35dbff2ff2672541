/**
 * The base of a project with the data of its services (CLONE-7): what a service's `take` line copied, or the folders of
 * reality file by file, which is right for a service that is stopped. Data in use is never shown as it is.
 */
import { lstatSync } from "node:fs";
import { chown, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { BroughtBase, CaptureRequest, DataFolder, VolumeAhead } from "../../machine/capture/capture.ts";
import type { Base } from "../../base/store/rows.ts";
import { likeReality } from "../../machine/capture/gitconfig.ts";
import { readPeople } from "../../machine/capture/people.ts";
import { listeningPorts } from "../../base/host/listening.ts";
import type { Service } from "../../base/schema/config.ts";
import type { Parts } from "../shared/parts.ts";
import type { Backend } from "../../machine/backends.ts";
import { captureRequest, refuseHiding, type ProjectView } from "./projects.ts";
import { removeTree, copyServiceData, type ServiceDataCopy } from "./service-data-copies.ts";

export type CaptureParts = Pick<Parts, "store" | "user" | "state" | "locks">;

/** With `last`, the caller does not need the data and takes the newest copy there is, however old. */
export async function captureBase(parts: CaptureParts, view: ProjectView, backend: Backend, data: "fresh" | "last"): Promise<Base> {
  return withRequest(parts, view, backend, data, (request) => backend.capture.base(request));
}

/** A base for a new sandbox, which may take a volume that was made ahead. */
export async function bringBase(
  parts: CaptureParts,
  view: ProjectView,
  backend: Backend,
  ahead: () => Promise<VolumeAhead | undefined>,
): Promise<BroughtBase> {
  return withRequest(parts, view, backend, "fresh", (request) => backend.capture.bring(request, ahead));
}

/** Copies are made and captured one at a time per project: a copy stays until the next one. */
async function withRequest<T>(
  parts: CaptureParts,
  view: ProjectView,
  { driver }: Backend,
  data: "fresh" | "last",
  capture: (request: CaptureRequest) => Promise<T>,
): Promise<T> {
  const services = Object.entries(view.config.services);
  // Without walls no service is started.
  if (services.length === 0 || !driver.capabilities.walled) return capture(captureRequest(view, parts.user));
  refuseHiding(view);
  const asked = data === "fresh" ? Date.now() : 0;
  return parts.locks.run(`services:${view.row.id}`, async () => {
    const folder = join(parts.state, "services", view.row.id);
    const folders: DataFolder[] = [];
    for (const [name, service] of services) {
      const own = join(folder, name);
      folders.push(...(service.take === undefined ? copied(name, service) : await taken(parts, view, { name, service, own, asked })));
    }
    await forgetOthers(folder, view.config.services);
    return capture(captureRequest(view, parts.user, folders));
  });
}

function copied(name: string, { data, ports }: Service): DataFolder[] {
  const open = listeningPorts();
  const answered = ports.find((port) => open.has(port));
  if (answered === undefined || data.length === 0) return data.map((path) => ({ path }));
  const note =
    `The service ${name} is running (port ${answered}), so the copy of its files may not fit together: ` +
    "stop it before cloning, or say in `take` how a running one is copied.";
  return data.map((path) => ({ path, note }));
}

interface TakeRequest {
  readonly name: string;
  readonly service: Service;
  /** The service's folder in the state folder. */
  readonly own: string;
  /** Milliseconds since the epoch; 0 is content with any copy. */
  readonly asked: number;
}

async function taken(parts: Pick<Parts, "store">, view: ProjectView, { name, service, own, asked }: TakeRequest): Promise<DataFolder[]> {
  const copies = await copyServiceData(own, view.row.path, service, asked - service.every);
  const { failure } = copies;
  if (failure !== undefined) {
    const event = { project: view.row.path, service: name, reason: failure };
    await parts.store.change((change) => change.event("service.failed", null, event));
  }
  const [first, ...others] = service.data;
  const note = failure === undefined ? {} : { note: explain(name, copies, failure) };
  const shown = first === undefined ? [] : [{ path: first, source: copies.folder ?? (await emptyFolder(own, first, service, 0)), ...note }];
  const empty = others.map(async (path, index) => ({ path, source: await emptyFolder(own, path, service, index + 1) }));
  return [...shown, ...(await Promise.all(empty))];
}

function explain(name: string, { folder, at }: ServiceDataCopy, failure: string): string {
  const instead = folder === null ? "they are empty inside" : `those of ${new Date(at).toISOString()} are used`;
  return `The data of the service ${name} could not be taken, so ${instead}: ${failure}`;
}

/** With reality's owner and mode, else the service's, so that it can fill it. */
async function emptyFolder(own: string, path: string, { user }: Service, index: number): Promise<string> {
  const folder = join(own, `empty-${index}`);
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const person = readPeople().find(({ name, uid }) => name === user || String(uid) === user);
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) likeReality(path, folder);
  else if (person !== undefined && process.getuid?.() === 0) await chown(folder, person.uid, person.gid);
  return folder;
}

async function forgetOthers(folder: string, services: Readonly<Record<string, Service>>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const gone = (await readdir(folder)).filter((name) => services[name]?.take === undefined);
  for (const name of gone) await removeTree(join(folder, name));
}
