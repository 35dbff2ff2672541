/** What this machine lets this user do, tried rather than guessed. */
import { existsSync, readFileSync } from "node:fs";
import { PROTOCOL_VERSION } from "./frames.ts";
import { errorText } from "./log.ts";
import { mountOf, readMounts } from "./mounts.ts";
import { run, TOOL_PATH } from "./run.ts";

const CELL_ANSWER_MS = 10_000;

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly uid: number;
  readonly gid: number;
  /** How the native driver can run here. */
  readonly mode: "root" | "user" | "none";
  /** Whether the server itself may mount: root that is not shut in, also where / takes no id map. */
  readonly mounts: boolean;
  /** The state folder lies on an overlay, which holds no changes of another one: only a pool of its own does there. */
  readonly stateOnOverlay: boolean;
  /** Why the cell that is here can't be used. */
  readonly cellTrouble: string | undefined;
  /** Results of `cell probe`: "ok" or an error number. */
  readonly probe: ReadonlyMap<string, string>;
  /** Ubuntu's AppArmor limit on user namespaces is on. */
  readonly apparmorLimit: boolean;
  readonly btrfsTools: boolean;
  readonly btrfsKernel: boolean;
}

function readOr(path: string, fallback: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Absent on this kernel.
    return fallback;
  }
}

/** A file that is no program, or one of another version, says so before anything depends on it. */
async function troubleOf(cell: string): Promise<string | undefined> {
  try {
    const { code, stdout } = await run(cell, ["--version"], { timeoutMs: CELL_ANSWER_MS, maxOutputBytes: 64 * 1024 });
    const said = stdout.toString().trim();
    if (code === 0 && said === String(PROTOCOL_VERSION)) return undefined;
    if (code !== 0) return `The cell ${cell} ${code === null ? "does not answer" : `ends with ${code}`}.`;
    return `The cell ${cell} is of another version: it speaks ${JSON.stringify(said.slice(0, 20))}, this program ${PROTOCOL_VERSION}.`;
  } catch (error) {
    return `The cell ${cell} can't be used: ${errorText(error)}.`;
  }
}

async function probeWith(cell: string): Promise<Map<string, string>> {
  const probe = new Map<string, string>();
  const { stdout } = await run(cell, ["probe"], { timeoutMs: CELL_ANSWER_MS });
  for (const line of stdout.toString().split("\n")) {
    const [name, result] = line.split("=");
    if (name && result) probe.set(name, result);
  }
  return probe;
}

export async function examineMachine(cell: string | undefined, state: string): Promise<Machine> {
  // Not from the account: an id without one, as containers have, is a user too.
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  const usable = cell !== undefined && process.platform === "linux";
  const cellTrouble = usable ? await troubleOf(cell) : undefined;
  const probe = usable && cellTrouble === undefined ? await probeWith(cell) : new Map<string, string>();
  const ok = (name: string): boolean => probe.get(name) === "ok";
  const btrfsTools = TOOL_PATH.split(":").some((folder) => existsSync(`${folder}/mkfs.btrfs`));
  const btrfsKernel = readOr("/proc/filesystems", "").includes("\tbtrfs") || existsSync("/sys/module/btrfs");
  const stateOnOverlay = process.platform === "linux" && mountOf(state, readMounts())?.type === "overlay";
  const holdsVolumes = !stateOnOverlay || (ok("overlay") && btrfsTools && btrfsKernel);
  const best = ok("overlay") && ok("id-mapped-root") && ok("user-namespace") ? "root" : ok("user-overlay") ? "user" : "none";
  return {
    platform: process.platform,
    uid,
    gid,
    mode: holdsVolumes ? best : "none",
    mounts: ok("overlay"),
    stateOnOverlay,
    cellTrouble,
    probe,
    apparmorLimit: readOr("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0").trim() === "1",
    btrfsTools,
    btrfsKernel,
  };
}
