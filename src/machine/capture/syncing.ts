/** Brings one root of the tip up to what reality is now. */
import { copyFile, mkdir, rm, unlink } from "node:fs/promises";
import { existsSync, lstatSync } from "node:fs";
import { join } from "node:path";
import type { CellHost } from "../../base/host/cell-host.ts";
import { type Fields, splitParts } from "../../base/host/frames.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Tip } from "../volumes/bases.ts";
import type { LargeIds } from "../../base/store/rows.ts";
import { likeReality, writeGitConfig } from "./gitconfig.ts";
import { gitFolderConfigs } from "./gitfolder.ts";
import type { Root } from "./roots.ts";
import type { ChangedPaths } from "./project-watcher.ts";

/** What a sync found, as far as a base reports it. Paths are relative to the root. */
export interface SyncReport {
  readonly files: number;
  readonly totalBytes: number;
  readonly changed: number;
  readonly removed: number;
  readonly copiedBytes: number;
  readonly special: number;
  readonly torn: readonly string[];
  readonly big: readonly string[];
  readonly unreadable: readonly string[];
  readonly mounts: readonly string[];
  /** What git ignores may have changed. */
  readonly ignoreChanged: boolean;
  /** Data that would not stand still. */
  readonly restless: boolean;
  readonly owners: LargeIds;
  /** Whether the twin looks like the root of the tip still. */
  readonly twin: boolean;
}

export interface SyncRequest {
  readonly tip: Tip;
  readonly root: Root;
  /** Folders left empty, and files left out; relative. */
  readonly skip: readonly string[];
  readonly dirty: ChangedPaths;
  /** Folder that looks like the root of the tip does, and gets the same changes. */
  readonly twin?: string | undefined;
}

/** Data of a service is consistent when a whole pass saw no change. */
const MOST_PASSES = 5;

export async function syncRoot(host: CellHost, request: SyncRequest): Promise<SyncReport> {
  const { tip, root } = request;
  const target = join(tip.folder, "roots", String(root.slot));
  if (!existsSync(target)) await mkdir(target, { recursive: true, mode: 0o755 });
  const synced = root.kind === "data" ? await syncUntilStill(host, request, target) : summary(await sync(host, request, target), false);
  for (const path of request.skip) await leaveOutFile(target, path);
  const configs = root.kind === "git" && synced.changed > 0;
  if (configs) for (const path of await gitFolderConfigs(root.source)) await writeGitConfig(root.source, path, target);
  likeReality(root.source, target);
  if (request.twin === undefined || !synced.twin || configs) return { ...synced, twin: false };
  for (const path of request.skip) await leaveOutFile(request.twin, path);
  likeReality(target, request.twin);
  return synced;
}

/** The fields that decide what is captured; a comparison must use the same ones. */
export function scopeFields(root: Pick<Root, "kind">, skip: readonly string[]): (readonly [string, string])[] {
  const scope = skip.map((path) => ["skip", path] as const);
  if (root.kind === "data" || root.kind === "taken") return scope;
  const hooks = root.kind === "git" ? [["skip", "hooks"] as const] : [];
  return [...scope, ...hooks, ["file_limit", String(LIMITS.maxCapturedFileBytes)], ["git", "1"]];
}

async function sync(host: CellHost, { tip, root, skip, dirty, twin }: SyncRequest, target: string): Promise<Fields> {
  const reply = await host.request("sync", [
    ["source", root.source],
    ["target", target],
    ["mode", tip.mode],
    ["manifest", `${tip.manifests}${root.slot}`],
    ...(tip.markers === undefined ? [] : [["in_place", "1"] as const, ["marker", `${tip.markers}${root.slot}`] as const]),
    ...(twin === undefined ? [] : twinFields(twin)),
    ...scopeFields(root, skip),
    ...(dirty === "all" ? [] : dirty.map((folder) => ["dirty", folder] as const)),
  ]);
  for (const path of reply.all("gitconfig")) await writeGitConfig(root.source, path, target);
  return reply;
}

function twinFields(twin: string): (readonly [string, string])[] {
  return [
    ["twin", twin],
    ["twin_bytes", String(LIMITS.broughtBytes)],
    ["twin_files", String(LIMITS.broughtFiles)],
  ];
}

async function syncUntilStill(host: CellHost, request: SyncRequest, target: string): Promise<SyncReport> {
  const manifest = `${request.tip.manifests}${request.root.slot}`;
  const before = `${manifest}.before`;
  if (existsSync(manifest)) await copyFile(manifest, before);
  let reply = await sync(host, request, target);
  for (let pass = 1; pass < MOST_PASSES; pass += 1) {
    const moved = await host.request("compare", [
      ["source", request.root.source],
      ["manifest", manifest],
      ...scopeFields(request.root, request.skip),
    ]);
    if (moved.all("row").length === 0) break;
    if (pass === MOST_PASSES - 1) return summary(reply, true);
    if (request.tip.mode === "layer") {
      // A layer is written once, so it is begun again from where the layer below it ended.
      await host.request("remove", [["path", target]]);
      await mkdir(target, { mode: 0o755 });
      if (existsSync(before)) await copyFile(before, manifest);
      else await rm(manifest, { force: true });
    }
    reply = await sync(host, { ...request, dirty: "all" }, target);
  }
  await rm(before, { force: true });
  return summary(reply, false);
}

/** The sync leaves out folders; a single file that is to be left out is taken away again, never through a link. */
async function leaveOutFile(target: string, path: string): Promise<void> {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length === 0 || parts.includes("..")) return;
  let at = target;
  for (const part of parts.slice(0, -1)) {
    at = join(at, part);
    if (lstatSync(at, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  }
  const file = join(at, parts.at(-1) ?? "");
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found !== undefined && !found.isDirectory()) await unlink(file);
}

function summary(reply: Fields, restless: boolean): SyncReport {
  return {
    files: reply.number("files") ?? 0,
    totalBytes: reply.number("total_bytes") ?? 0,
    changed: reply.number("changed") ?? 0,
    removed: reply.number("removed") ?? 0,
    copiedBytes: reply.number("bytes") ?? 0,
    special: reply.number("special") ?? 0,
    torn: reply.all("torn"),
    big: reply.rawAll("big").map((row) => splitParts(row, 2)[0]?.toString() ?? ""),
    unreadable: reply.all("unreadable"),
    mounts: reply.all("mount"),
    ignoreChanged: reply.flag("ignore"),
    restless,
    twin: reply.flag("twin"),
    owners: { uids: reply.all("owner").map(Number), gids: reply.all("group").map(Number) },
  };
}
