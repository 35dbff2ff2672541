/** A capture on real storage, with projects to try it on. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CaptureRequest } from "../../src/machine/capture/capture.ts";
import type { Base } from "../../src/base/store/rows.ts";
import { ProjectCapture } from "../../src/machine/capture/projects.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import type { CellHost } from "../../src/base/host/cell-host.ts";
import type { Storage } from "../../src/machine/volumes/volumes.ts";
import { makeStorage, type StorageLab } from "./storage.ts";

/** A text that must not be found inside. */
export const CANARY = `canary-${newId("project")}`;

export function git(folder: string, ...args: string[]): string {
  const identity = [
    "-c",
    "user.name=T",
    "-c",
    "user.email=t@example.org",
    "-c",
    "protocol.file.allow=always",
    "-c",
    "init.defaultBranch=main",
    "-c",
    "safe.directory=*",
  ];
  const env = { PATH: process.env["PATH"] ?? "", GIT_CONFIG_GLOBAL: "/dev/null" };
  return execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], env });
}

/** Files of a folder that hold the canary, one a line. */
export function filesWithCanary(folder: string): string {
  return execFileSync("sh", ["-c", `grep -rl ${CANARY} "$1" || true`, "sh", folder], { encoding: "utf8" });
}

export function requestFor(path: string, more: Partial<CaptureRequest> = {}): CaptureRequest {
  return { project: newId("project"), path, exclude: [], hidden: [], live: [], limitBytes: LIMITS.maxCapturedBytes, data: [], ...more };
}

export class CaptureLab {
  readonly host: CellHost;
  readonly storage: Storage;
  readonly capture: ProjectCapture;
  readonly #lab: StorageLab;
  readonly #parent: string;
  readonly #folders: string[] = [];

  private constructor(lab: StorageLab, parent: string) {
    this.#lab = lab;
    this.#parent = parent;
    this.host = lab.host;
    this.storage = lab.storage;
    this.capture = new ProjectCapture(lab.host, lab.storage);
  }

  /** Projects are made below `parent`. */
  static async open(name: "btrfs" | "plain", parent = tmpdir()): Promise<CaptureLab> {
    return new CaptureLab(await makeStorage(name), parent);
  }

  folder(): string {
    const made = realpathSync(mkdtempSync(join(this.#parent, "viv-project-")));
    this.#folders.push(made);
    return made;
  }

  /** The base as a sandbox would see it: a mounted overlay on plain storage, the folder itself on btrfs. */
  async view<T>(base: Base, slot: number, look: (root: string) => T): Promise<T> {
    const { disks } = this.storage;
    const id = newId("sandbox");
    const { folder, layers } = await disks.create(id, { base: base.id, project: base.project }, 64 * 1024 ** 2);
    const root = join(folder, "roots", String(slot));
    try {
      if (layers.length === 0) return look(root);
      const at = join(root, "seen");
      mkdirSync(at);
      const lower = layers.map((layer) => join(layer, "roots", String(slot))).join(":");
      execFileSync("mount", [
        "-t",
        "overlay",
        "overlay",
        "-o",
        `lowerdir=${lower},upperdir=${root}/upper,workdir=${root}/work,index=off`,
        at,
      ]);
      try {
        return look(at);
      } finally {
        execFileSync("umount", ["--lazy", at]);
      }
    } finally {
      await disks.remove(id);
    }
  }

  async close(): Promise<void> {
    await this.capture.close();
    await this.#lab.remove();
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
  }
}
