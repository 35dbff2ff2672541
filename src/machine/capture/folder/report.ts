/** What the copy of a project holds, said for people. */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { CaptureReport } from "../../../base/schema/sandbox.ts";
import type { CopyReport } from "../../volumes/folder/trees.ts";
import type { CaptureRequest } from "../capture.ts";

const UNWALLED =
  "UNWALLED: this sandbox is a copy of the project's folder without isolation. Its commands can read and change everything this user can, the real project included.";

const MOST_NAMED = 10;

export function makeReport(request: CaptureRequest, copied: CopyReport): CaptureReport {
  return {
    files: copied.files,
    bytes: copied.bytes,
    changed: copied.fresh,
    removed: 0,
    live: [],
    readOnly: [],
    torn: [],
    notes: [UNWALLED, ...notes(request, copied)],
  };
}

function notes(request: CaptureRequest, copied: CopyReport): string[] {
  const { path, live, data } = request;
  const linked = lstatSync(join(path, ".git"), { throwIfNoEntry: false })?.isDirectory() === false;
  return [
    ...(linked
      ? ["The project's .git names a repository elsewhere and is left out, because git in the copy would change that repository."]
      : []),
    ...(copied.special > 0 ? [`${copied.special} sockets, pipes or devices in ${path} are left out.`] : []),
    ...copied.unreadable.slice(0, MOST_NAMED).map((name) => `${join(path, name)} can't be read and is left out.`),
    ...(live.length > 0 ? ["Folders that are configured to be shared live are copied."] : []),
    ...(data.length > 0 ? ["Data of services is not copied, and services are not started."] : []),
  ];
}
