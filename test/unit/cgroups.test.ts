import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { findHierarchies, layoutOf } from "../../src/base/host/cgroup-hierarchies.ts";
import { Cgroups } from "../../src/base/host/cgroups.ts";

const mount = (target: string, type: "cgroup" | "cgroup2", options: string): string =>
  `33 24 0:28 / ${target} rw,nosuid,nodev,noexec,relatime shared:9 - ${type} ${type} rw,${options}`;
const ROOT = "24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw";

const V2 = [ROOT, mount("/sys/fs/cgroup", "cgroup2", "nsdelegate")].join("\n");
const V1 = [
  ROOT,
  mount("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "cpu,cpuacct"),
  mount("/sys/fs/cgroup/memory", "cgroup", "memory"),
  mount("/sys/fs/cgroup/pids", "cgroup", "pids"),
  mount("/sys/fs/cgroup/freezer", "cgroup", "freezer"),
  mount("/sys/fs/cgroup/systemd", "cgroup", "xattr,name=systemd"),
].join("\n");
const HYBRID = [V1, mount("/sys/fs/cgroup/unified", "cgroup2", "nsdelegate")].join("\n");
/** Systemd's own hierarchy of the old kind beside everything else in the new one. */
const MOVED = [
  ROOT,
  mount("/sys/fs/cgroup/systemd", "cgroup", "xattr,name=systemd"),
  mount("/sys/fs/cgroup/freezer", "cgroup", "freezer"),
  mount("/sys/fs/cgroup/unified", "cgroup2", "nsdelegate"),
].join("\n");

describe("cgroups of a machine", () => {
  test.each([
    { what: "v2 alone", mountinfo: V2, layout: "v2", version: 2, memory: "/sys/fs/cgroup" },
    { what: "v1 alone", mountinfo: V1, layout: "v1", version: 1, memory: "/sys/fs/cgroup/memory" },
    { what: "both, with the controllers in v1", mountinfo: HYBRID, layout: "hybrid", version: 1, memory: "/sys/fs/cgroup/memory" },
    { what: "both, with the controllers in v2", mountinfo: MOVED, layout: "hybrid", version: 2, memory: "/sys/fs/cgroup/unified" },
  ])("F-26: are found where there is $what", ({ mountinfo, layout, version, memory }) => {
    expect(layoutOf(mountinfo)).toBe(layout);
    const found = findHierarchies(mountinfo);
    expect(found?.version).toBe(version);
    expect(found?.mounts.get("memory")).toBe(memory);
    expect(["cpu", "memory", "pids", "freezer"].every((controller) => found?.mounts.has(controller as "cpu"))).toBe(true);
  });

  test.each([
    { what: "none at all", mountinfo: ROOT },
    { what: "v1 without a controller that limits need", mountinfo: V1.replace(/^.*\/pids .*$/m, "") },
    { what: "nothing to read", mountinfo: "" },
  ])("F-26: are not taken for there with $what", ({ mountinfo }) => {
    expect(findHierarchies(mountinfo)).toBeUndefined();
    expect(Cgroups.open("vivarium-test", mountinfo)).toBeUndefined();
  });
});

describe("cgroups that can't hold limits", () => {
  const place = mkdtempSync(join(tmpdir(), "viv-cgroups-"));
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  test("F-26: are refused where v2 lacks a controller, as beside a v1 that has it", () => {
    const folder = join(place, "lacking");
    mkdirSync(folder);
    writeFileSync(join(folder, "cgroup.controllers"), "cpu pids\n");
    writeFileSync(join(folder, "cgroup.subtree_control"), "");
    expect(findHierarchies(mount(folder, "cgroup2", "nsdelegate"))?.version).toBe(2);
    expect(Cgroups.open("vivarium-test", mount(folder, "cgroup2", "nsdelegate"))).toBeUndefined();
  });

  test("F-26: are refused where no group can be made", () => {
    writeFileSync(join(place, "file"), "");
    const unusable = V1.replaceAll("/sys/fs/cgroup", join(place, "file"));
    expect(findHierarchies(unusable)?.version).toBe(1);
    expect(Cgroups.open("vivarium-test", unusable)).toBeUndefined();
  });
});
