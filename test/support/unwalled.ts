/** The unwalled way as a server puts it together, on a project of its own; everything is taken away afterwards. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { CaptureRequest } from "../../src/machine/capture/capture.ts";
import type { Base } from "../../src/base/store/rows.ts";
import { FolderCapture } from "../../src/machine/capture/folder/capture.ts";
import type { ExecRequest, Walls } from "../../src/machine/drivers/drivers.ts";
import { FolderDriver } from "../../src/machine/drivers/folder/folder.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { type FolderStorage, openFolder } from "../../src/machine/volumes/folder/storage.ts";
import { USER } from "./driver-lab.ts";
import { memoryFolder } from "./folders.ts";
import type { VolumePaths } from "../../src/machine/volumes/disks.ts";

export interface Box {
  readonly id: string;
  readonly base: Base;
  readonly walls: Walls;
  /** Its copy of the project. */
  readonly copy: string;
}

export interface Unwalled {
  readonly home: string;
  readonly project: string;
  readonly request: CaptureRequest;
  readonly driver: FolderDriver;
  readonly storage: FolderStorage;
  readonly capture: FolderCapture;
  /** Writes a file of the real project. */
  put(name: string, text: string): void;
  create(): Promise<Box>;
  launch(id: string, base: Base, volume: VolumePaths): Promise<Box>;
  remove(): Promise<void>;
}

export async function makeUnwalled(files: Record<string, string>): Promise<Unwalled> {
  const folder = realpathSync(mkdtempSync(join(memoryFolder(), "viv-unwalled-")));
  const home = join(folder, "home");
  const project = join(folder, "project");
  const storage = await openFolder({ home });
  const capture = new FolderCapture(storage.bases);
  const driver = new FolderDriver({ home });
  const request = {
    project: newId("project"),
    path: project,
    exclude: [],
    hidden: [],
    live: [],
    limitBytes: LIMITS.maxCapturedBytes,
    data: [],
  };
  const put = (name: string, text: string): void => {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  };
  const limits = { cpus: 1, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 3, processes: 100 };
  const launch = async (id: string, base: Base, volume: VolumePaths): Promise<Box> => {
    const walls = await driver.launch({
      sandbox: id,
      limits,
      range: 0,
      largeIds: { uids: [], gids: [] },
      sudo: false,
      content: {
        name: "box",
        volume: () => Promise.resolve(volume),
        base,
        project,
        mask: [],
        expose: [],
        readOnly: false,
        sealed: false,
        home: folder,
        isUsedAtOnce: false,
      },
    });
    return { id, base, walls, copy: join(volume.folder, "roots/0") };
  };
  const create = async (): Promise<Box> => {
    const base = await capture.base(request);
    const id = newId("sandbox");
    return launch(id, base, await storage.disks.create(id, { base: base.id, project: request.project }, limits.diskBytes));
  };
  const remove = async (): Promise<void> => {
    await driver.close();
    await capture.close();
    await storage.close(true);
    rmSync(folder, { recursive: true, force: true });
  };
  for (const [name, text] of Object.entries(files)) put(name, text);
  return { home, project, request, driver, storage, capture, put, create, launch, remove };
}

export function execRequest(project: string, line: string, more: Partial<ExecRequest> = {}): ExecRequest {
  return { id: newId("command"), command: ["/bin/sh", "-c", line], env: {}, cwd: project, user: USER, stdin: false, ...more };
}
