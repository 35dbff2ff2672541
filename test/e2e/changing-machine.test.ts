/** A machine whose disks come and go between two launches of a sandbox. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FOLDERS = ["/srv", "/opt", "/var/local"];

describe.each(["btrfs", "plain"] as const)("changes in folders that are disks of their own (%s)", needs("root", "btrfs"), (storage) => {
  let place: string;
  let server: TestServer;

  const disk = (folder: string): string => join(place, folder.replaceAll("/", "_"));
  /** In the server's own mount namespace. */
  const on = (...command: readonly string[]): void => void execFileSync("nsenter", ["-t", String(server.pid), "-m", ...command]);
  const plug = (folder: string): void => on("mount", "--bind", disk(folder), folder);
  const unplug = (folder: string): void => on("umount", "-l", folder);

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-changing-"));
    for (const folder of FOLDERS) {
      mkdirSync(disk(folder));
      writeFileSync(join(disk(folder), "name"), folder);
    }
    server = await TestServer.start({ config: { storage }, through: ["unshare", "--mount"] });
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(place, { recursive: true, force: true });
  });

  const seen = async (sandbox: string): Promise<string> => {
    const lines = FOLDERS.map((folder) => `echo $(cat ${folder}/name ${folder}/mine 2>/dev/null)`);
    return (await server.sh(sandbox, lines.join("; "), { user: "root" })).stdout;
  };

  test("CLONE-3: stay with their folder in forks and rollbacks when other disks come and go", async () => {
    for (const folder of ["/srv", "/opt"]) plug(folder);
    const box = (await server.create()).id;
    await server.sh(box, "echo 1 > /srv/mine; echo 2 > /opt/mine", { user: "root" });
    expect(await seen(box)).toBe("/srv1\n/opt2\n\n");
    const { id: snapshot } = await server.client.call("createSnapshot", { sandbox: box });
    const fork = async (of: string | undefined, sandbox = box): Promise<string> => {
      const { sandboxes } = await server.client.call("forkSandbox", { sandbox, ...(of === undefined ? {} : { snapshot: of }) });
      return sandboxes[0]?.id ?? "";
    };

    unplug("/srv");
    expect(await seen(await fork(snapshot))).toBe("\n/opt2\n\n");
    plug("/var/local");
    const later = await fork(snapshot);
    expect(await seen(later)).toBe("\n/opt2\n/var/local\n");
    await server.client.call("rollback", { sandbox: box, snapshot });
    expect(await seen(box)).toBe("\n/opt2\n/var/local\n");

    await server.sh(later, "echo 3 > /var/local/mine", { user: "root" });
    plug("/srv");
    expect(await seen(await fork(undefined, later))).toBe("/srv1\n/opt2\n/var/local3\n");
    for (const folder of FOLDERS) expect(readdirSync(disk(folder))).toEqual(["name"]);
  });
});
