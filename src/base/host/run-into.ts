/** Runs a shell line that fills a folder of the state folder, also as a user who can't go there. */
import { chmod, mkdtemp, rmdir } from "node:fs/promises";
import { runAlone } from "./run-alone.ts";
import type { RunResult } from "./run.ts";

export interface IntoRequest {
  readonly line: string;
  /** The folder to fill; the line finds it as `$VIV_DATA`. */
  readonly folder: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Who runs it, where that is not the server's user. */
  readonly become?: { readonly uid: number; readonly gid: number };
}

/** Both belong to root, so that no other user can put something in their place. */
const PLACE = "/run/viv-data-";
const SCRIPT = 'mount --bind "$1" "$2" && exec setpriv --reuid "$3" --regid "$4" --clear-groups -- /bin/sh -c "$5"';

export async function runInto(request: IntoRequest): Promise<RunResult> {
  const { line, folder, cwd, timeoutMs, become } = request;
  if (become === undefined) return runAlone("/bin/sh", ["-c", line], { cwd, timeoutMs, env: { ...request.env, VIV_DATA: folder } });
  const place = await mkdtemp(PLACE);
  try {
    await chmod(place, 0o755);
    // The mount is seen by the line alone; what is unmounted in reality meanwhile is unmounted for it, too.
    const args = ["--mount", "--propagation", "slave", "--", "/bin/sh", "-c", SCRIPT, "sh", folder, place];
    const env = { ...request.env, VIV_DATA: place };
    return await runAlone("unshare", [...args, String(become.uid), String(become.gid), line], { cwd, timeoutMs, env });
  } finally {
    await rmdir(place);
  }
}
