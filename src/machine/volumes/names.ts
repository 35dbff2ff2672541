/** Names of volumes and their like on disk. They derive from ids alone, so nothing a user types becomes a path. */
import { randomBytes } from "node:crypto";
import { VivError } from "../../base/schema/errors.ts";

/** Prefixes of what is half-made, half-removed, or ready to replace a volume. No id begins with a dot. */
export const MAKING = ".making-";
export const TRASH = ".trash-";
export const REPLACING = ".replacing-";

export function checkedId(id: string): string {
  if (!/^[a-z0-9]{1,64}$/.test(id)) throw new VivError("internal", `${JSON.stringify(id)} is not an id`);
  return id;
}

export function asideName(prefix: string): string {
  return prefix + randomBytes(8).toString("hex");
}

/** A snapshot's name holds the volume it was taken of, which its space is charged to. */
export function snapshotName(snapshot: string, volume: string): string {
  return `${checkedId(snapshot)}@${checkedId(volume)}`;
}

export function parseSnapshotName(name: string): { snapshot: string; volume: string } | undefined {
  const match = /^([a-z0-9]{1,64})@([a-z0-9]{1,64})$/.exec(name);
  return match?.[1] === undefined || match[2] === undefined ? undefined : { snapshot: match[1], volume: match[2] };
}
