/**
 * Where Vivarium keeps things. Root's state is the machine's (/var/lib, /etc); that of other users follows the XDG folders.
 * VIV_HOME moves the state and VIV_CONFIG the user's config.
 */
import { lstatSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { realPlace } from "../host/real-place.ts";
import { VivError } from "../schema/errors.ts";

export interface Paths {
  /** State folder, 0700. */
  readonly home: string;
  /** Socket of the server. */
  readonly socket: string;
  /** Log of a server that the CLI started. */
  readonly log: string;
  /** Token for the server's TCP port, 0600; there while the server listens on one. */
  readonly token: string;
  /** Held while a server is being started. */
  readonly startLock: string;
  /** The user's own config. */
  readonly config: string;
}

/** Where the programs of agents are that the server fetched. Unlike the rest of the state folder, every sandbox sees it. */
export function agentsFolder({ home }: Pick<Paths, "home">): string {
  return join(home, "agents");
}

/** Where the Node is that runs TypeScript inside. Every sandbox sees it, too. */
export function runtimesFolder({ home }: Pick<Paths, "home">): string {
  return join(home, "runtimes");
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** sockaddr_un holds 108 bytes; some systems hold 104. */
const MAX_SOCKET_BYTES = 100;

export function findPaths(env: Environment = process.env, uid: number = process.getuid?.() ?? 0): Paths {
  const home = withoutLinks(stateFolder(env, uid));
  return {
    home,
    socket: socketPath(home, env, uid),
    log: join(home, "server.log"),
    token: join(home, "token"),
    startLock: join(home, "start.lock"),
    config: configFile(env, uid),
  };
}

function stateFolder(env: Environment, uid: number): string {
  if (env["VIV_HOME"]) return resolve(env["VIV_HOME"]);
  if (uid === 0) return "/var/lib/vivarium";
  return join(xdg(env, "XDG_STATE_HOME", ".local/state"), "vivarium");
}

function configFile(env: Environment, uid: number): string {
  if (env["VIV_CONFIG"]) return resolve(env["VIV_CONFIG"]);
  if (uid === 0) return "/etc/vivarium/config.json";
  return join(xdg(env, "XDG_CONFIG_HOME", ".config"), "vivarium", "config.json");
}

/** Mounts and masks need real paths. A link at the end is kept, so that it is refused later: another user may have made it. */
function withoutLinks(folder: string): string {
  return join(realPlace(dirname(folder)), basename(folder));
}

/** The XDG specification ignores relative values. */
function xdg(env: Environment, name: string, fallback: string): string {
  const folder = env[name];
  return folder && isAbsolute(folder) ? folder : join(env["HOME"] || homedir(), fallback);
}

function socketPath(home: string, env: Environment, uid: number): string {
  const usual = join(home, "viv.sock");
  if (Buffer.byteLength(usual) <= MAX_SOCKET_BYTES) return usual;
  // Loaded only here: it takes longer to load than the rest of a small command, and few commands need it.
  const { createHash } = process.getBuiltinModule("node:crypto");
  const short = createHash("sha256").update(home).digest("hex").slice(0, 16);
  return join(shortFolder(env, uid), `${short}.sock`);
}

function shortFolder(env: Environment, uid: number): string {
  const runtime = env["XDG_RUNTIME_DIR"];
  if (runtime && isAbsolute(runtime) && Buffer.byteLength(runtime) < 60) return join(runtime, "vivarium");
  return `/tmp/viv-${uid}`;
}

/** Makes the folders that must exist before a server can listen, private to the user. */
export function preparePaths(paths: Paths, uid: number = process.getuid?.() ?? 0): void {
  privateFolder(paths.home, uid);
  const folder = resolve(paths.socket, "..");
  if (folder !== paths.home) privateFolder(folder, uid);
}

/** Every user may make names in /tmp, so a folder found there counts only if no other user can write to it. */
function privateFolder(folder: string, uid: number): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0) return;
  throw new VivError("denied", `${folder} is not a folder that only you can write to.`, {
    remedy: `Remove it, or make it yours with mode 0700, or choose another state folder with VIV_HOME.`,
  });
}
