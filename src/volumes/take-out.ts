/** Single files taken out of a tree that a sandbox wrote. */
import type { CellHost } from "../host/cell-host.ts";
import { joinParts } from "../host/frames.ts";
import { LIMITS } from "../schema/limits.ts";

/** Copies a regular file, never through a link; false if it is none or larger than text is. */
export function takeOutWith(host: CellHost): (root: string, path: string, target: string) => Promise<boolean> {
  return async (root, path, target) => {
    const reply = await host.request("extract", [
      ["root", root],
      ["most", String(LIMITS.maxCountedFileBytes)],
      ["file", joinParts([path, target])],
    ]);
    return reply.raw("skipped") === undefined;
  };
}
