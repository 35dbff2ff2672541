/** What a sandbox is made from, and what follows from that. */
import type { BroughtBase, VolumeAhead } from "../../machine/capture/capture.ts";
import type { Backend } from "../../machine/backends.ts";
import type { HostRule } from "../../base/schema/network.ts";
import type { StartingPoint } from "../../base/schema/start.ts";
import type { Base } from "../../base/store/rows.ts";
import type { ProjectView } from "../projects/projects.ts";

/** What a new sandbox is made from. */
export interface Origin {
  readonly view: ProjectView;
  /** Absent for a project of reality. */
  readonly start?: StartingPoint;
  /** Hosts that the caller named with it: the sandbox reaches them, unless its network is off. */
  readonly opens?: readonly HostRule[];
  /** `ahead` is the volume of a sandbox made ahead, which may be brought to the base. */
  capture(backend: Backend, ahead?: () => Promise<VolumeAhead | undefined>): Promise<Captured>;
}

export interface Captured {
  readonly base: Base;
  /** What became of the volume made ahead; left out where none was touched. */
  readonly volume?: BroughtBase["volume"];
  /** As it is known by now. */
  readonly start?: StartingPoint;
  /** What the caller should know of it, a sentence each. */
  readonly notes?: readonly string[];
}

/** Whether the next sandbox of its project may be one that was made ahead. Each clone of a repository is fetched anew. */
export function isAlike({ start }: { readonly start?: StartingPoint | undefined }): boolean {
  return start?.from !== "git";
}
