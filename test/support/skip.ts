/** What a machine can do, asked of the machine itself. A test says what it needs; what is missing is its reason to be skipped. */
import { spawnSync } from "node:child_process";
import { accessSync, constants, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestOptions } from "vitest";
import { postgresPrograms } from "./postgres.ts";

declare module "vitest" {
  interface TaskMeta {
    skipReason?: string;
  }
}

type Probe = () => string | undefined;

const PROBES = {
  linux: () => (process.platform === "linux" ? undefined : "it is not Linux"),
  root: () => (process.getuid?.() === 0 ? undefined : "it does not run as root"),
  compiler: () => program("cc"),
  git: () => program("git"),
  bwrap: () => program("bwrap"),
  openssl: () => program("openssl"),
  curl: () => program("curl"),
  setfattr: () => program("setfattr"),
  tmux: () => program("tmux"),
  wget: () => program("wget"),
  python3: () => program("python3"),
  pip: () => (succeeds("python3", ["-m", "pip", "--version"]) ? undefined : "pip is not installed"),
  go: () => program("go"),
  runc: () => program("runc"),
  chromium: () => program("chromium"),
  jupyter: () => program("jupyter-server"),
  desktop: () => ["Xvnc", "openbox", "xdotool", "xterm"].map(program).find((reason) => reason !== undefined),
  postgres: () => (postgresPrograms() === undefined ? "postgresql is not installed" : undefined),
  btrfs: probeBtrfs,
  "user-namespaces": probeUserNamespaces,
  "cgroup-v2": probeCgroup,
  "open-checkout": probeCheckout,
} as const satisfies Record<string, Probe>;

export type Capability = keyof typeof PROBES;

const answers = new Map<Capability, string | undefined>();

/** The first reason why this machine lacks one of these, or undefined. */
export function missing(...capabilities: readonly Capability[]): string | undefined {
  for (const capability of capabilities) {
    if (!answers.has(capability)) answers.set(capability, PROBES[capability]());
    const reason = answers.get(capability);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** Options of a `describe` or `test` that needs these: `describe("a pool", needs("root", "btrfs"), () => {...})`. */
export function needs(...capabilities: readonly Capability[]): TestOptions {
  const reason = missing(...capabilities);
  return reason === undefined ? { skip: false, meta: {} } : { skip: true, meta: { skipReason: reason } };
}

function program(name: string): string | undefined {
  return programPath(name) === undefined ? `${name} is not installed` : undefined;
}

/** Where a program of this machine is; the PATH inside a sandbox may have fewer folders. */
export function programPath(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Makes and mounts a small pool in a mount namespace of its own, which takes mount and loop device with it. */
function probeBtrfs(): string | undefined {
  const lacking = PROBES.root() ?? program("mkfs.btrfs");
  if (lacking !== undefined) return lacking;
  const script = `
    folder=$(mktemp -d) && trap 'umount "$folder/mount" 2>/dev/null; rm -rf "$folder"' EXIT &&
    truncate -s 128M "$folder/pool" && mkfs.btrfs -q "$folder/pool" && mkdir "$folder/mount" &&
    mount -o loop,nosuid,nodev "$folder/pool" "$folder/mount"`;
  return succeeds("unshare", ["-m", "sh", "-c", script]) ? undefined : "btrfs can't be mounted from a file";
}

/** As an ordinary user, since root is allowed them where users are not. */
function probeUserNamespaces(): string | undefined {
  const identity = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  return succeeds("unshare", ["-U", "-r", "true"], identity) ? undefined : "ordinary users can't make user namespaces";
}

/** Tests that act as another user run this checkout's programs as that user. */
function probeCheckout(): string | undefined {
  const identity = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const readable =
    succeeds("test", ["-r", fileURLToPath(import.meta.url)], identity) && succeeds(process.execPath, ["--version"], identity);
  return readable ? undefined : "other users can't read this checkout";
}

function probeCgroup(): string | undefined {
  if (process.platform !== "linux") return PROBES.linux();
  return readFileSync("/proc/self/mounts", "utf8").includes(" cgroup2 ") ? undefined : "cgroup v2 is not mounted";
}

function succeeds(name: string, args: readonly string[], identity: { uid?: number; gid?: number } = {}): boolean {
  return spawnSync(name, args, { stdio: "ignore", timeout: 20_000, cwd: "/", ...identity }).status === 0;
}
