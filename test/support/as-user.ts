/** Run as an ordinary user by volumes-user.test.ts: captures a project, mounts it, snapshots, rolls back, forks and removes. Prints what it saw as JSON. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MaskLayers } from "../../src/machine/capture/masks.ts";
import { ProjectCapture } from "../../src/machine/capture/projects.ts";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { openPlain } from "../../src/machine/volumes/plain/storage.ts";

const [cell = "", folder = ""] = process.argv.slice(2);
const home = join(folder, "home");
const project = join(folder, "project");
mkdirSync(join(home, "at"), { recursive: true });
mkdirSync(join(project, "shut"), { recursive: true });
for (const name of ["gone", "stays", "shut/file"]) writeFileSync(join(project, name), name);
chmodSync(join(project, "shut"), 0o555);

const host = new CellHost({ program: cell });
const storage = await openPlain(host, { home });
const capture = new ProjectCapture(host, storage);
const request = { project: newId("project"), path: project, exclude: [], hidden: [], live: [], limitBytes: 2 ** 40, data: [] };
const first = await capture.base(request);
rmSync(join(project, "gone"));
writeFileSync(join(project, "new"), "");
const base = await capture.base(request);
const staleness = await capture.staleness(first, request);

const id = newId("sandbox");
const inside = async (volume: string, script: string): Promise<string[]> => {
  const { folder: at, layers } = await storage.disks.paths(volume);
  const lower = layers.map((layer) => join(layer, "roots/0")).join(":");
  const mount = `mount -t overlay overlay -o lowerdir=${lower},upperdir=${at}/roots/0/upper,workdir=${at}/roots/0/work,userxattr ${home}/at && cd ${home}/at && ${script}`;
  return execFileSync("unshare", ["-Urm", "sh", "-c", mount], { encoding: "utf8" }).trim().split("\n");
};
await storage.disks.create(id, { base: base.id, project: request.project }, 2 ** 30);
const captured = await inside(id, "ls");
const changed = await inside(id, "rm stays && mkdir closed && echo x > closed/x && chmod 0 closed && ls");
const snapshot = newId("snapshot");
await storage.snapshots.take(id, snapshot);
await inside(id, "rm -rf ./* && ls");
await storage.snapshots.restore(id, snapshot);
const rolledBack = await inside(id, "ls && cat closed/x");
const fork = newId("sandbox");
await storage.disks.create(fork, { snapshot }, 2 ** 30);
const forked = await inside(fork, "ls");
const usage = await storage.disks.usage(id);

const masks = await MaskLayers.open({
  host,
  folder: join(home, "masks"),
  own: [home],
  ownShown: [],
  mode: "user",
  mounts: false,
  mountName: "viv-mask-test",
});
const layer = await masks.layer({ home: folder, project, mask: [], expose: [] });
for (const volume of [id, fork]) await storage.disks.remove(volume);
await storage.snapshots.remove(snapshot);
await capture.close();
await storage.close(true);
await host.close();
const left = ["volumes", "snapshots"].flatMap((kind) => readdirSync(join(home, "volumes", kind)));
process.stdout.write(
  JSON.stringify({
    staleness: staleness.changes,
    captured,
    changed,
    rolledBack,
    forked,
    usage,
    left,
    masked: layer.masked,
    layer: readdirSync(layer.path),
  }),
);
