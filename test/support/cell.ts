/** A resident helper for tests, a btrfs pool of its own, and a description of trees that can be compared. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { type Fields, joinParts } from "../../src/base/host/frames.ts";
import { memoryFolder } from "./folders.ts";
import { sanitizedCell } from "./sanitized-cell.ts";

type Value = string | Buffer | number;
export type Ask = (operation: string, fields?: Record<string, Value | readonly Value[]>) => Promise<Fields>;

export interface CellForTests {
  readonly folder: string;
  readonly host: CellHost;
  readonly events: { name: string; fields: Fields }[];
  ask: Ask;
  /** A mounted btrfs file system, gone with `remove`. */
  pool(): string;
  remove(): Promise<void>;
}

export function startCell(): CellForTests {
  const folder = realpathSync(mkdtempSync(join(memoryFolder(), "viv-cell-")));
  const events: CellForTests["events"] = [];
  const host = new CellHost({ program: sanitizedCell(), onEvent: (name, fields) => events.push({ name, fields }) });
  const mounts: string[] = [];
  return {
    folder,
    host,
    events,
    ask: (operation, fields = {}) => host.request(operation, listFields(fields)),
    pool() {
      const pool = join(folder, `pool${mounts.length}`);
      mkdirSync(pool);
      execFileSync("truncate", ["-s", "1G", `${pool}.image`]);
      execFileSync("mkfs.btrfs", ["-q", `${pool}.image`], { stdio: "ignore" });
      execFileSync("mount", ["-o", "loop,nosuid,nodev", `${pool}.image`, pool]);
      mounts.push(pool);
      return pool;
    },
    async remove() {
      await host.close();
      for (const mount of mounts) execFileSync("umount", [mount]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function listFields(fields: Record<string, Value | readonly Value[]>): [string, string | Buffer][] {
  const text = (value: Value): string | Buffer => (typeof value === "number" ? String(value) : value);
  return Object.entries(fields).flatMap(([key, value]) =>
    Array.isArray(value) ? value.map((one: Value): [string, string | Buffer] => [key, text(one)]) : [[key, text(value as Value)]],
  );
}

export const parts = (...values: readonly (string | Buffer)[]): Buffer => joinParts(values);

export interface DescribeOptions {
  /** Times of folders, which a layer does not carry alone. */
  readonly folderTimes: boolean;
  /** Which names are one file, which an overlay does not keep over layers. */
  readonly links: boolean;
}

/** One line an entry: everything that a faithful copy has in common with its original. */
export function describeTree(root: string, options: DescribeOptions): string[] {
  const lines: string[] = [];
  const firstNames = new Map<bigint, string>();
  const visit = (path: Buffer, name: string): void => {
    const status = lstatSync(path, { bigint: true });
    const kind = (status.mode & 0o170000n).toString(8);
    const line = [name, kind, (status.mode & 0o7777n).toString(8), status.uid, status.gid];
    if (!status.isDirectory() || options.folderTimes) line.push(status.mtimeNs);
    if (status.isFile()) line.push(status.size, createHash("sha1").update(readFileSync(path)).digest("hex"));
    if (status.isSymbolicLink()) line.push(readlinkSync(path, { encoding: "latin1" }));
    if (status.isFile() && status.nlink > 1n && options.links) {
      if (!firstNames.has(status.ino)) firstNames.set(status.ino, name);
      line.push(`one file with ${firstNames.get(status.ino)}`);
    }
    lines.push(line.join(" "));
    if (!status.isDirectory()) return;
    const names = readdirSync(path, { encoding: "buffer" }).sort((left, right) => left.compare(right));
    for (const child of names) visit(Buffer.concat([path, Buffer.from("/"), child]), `${name}/${JSON.stringify(child.toString("latin1"))}`);
  };
  visit(Buffer.from(root), "");
  return lines;
}
