/** What a new sandbox is made from. */
import type { HostRule } from "../../base/schema/network.ts";
import type { StartingPoint } from "../../base/schema/start.ts";
import type { Base } from "../../base/store/rows.ts";
import type { Backend } from "../../machine/backends.ts";
import type { ProjectView } from "../projects/projects.ts";

export interface Origin {
  readonly view: ProjectView;
  /** Absent for a project of reality. */
  readonly start?: StartingPoint;
  /** Hosts that the caller named with it: the sandbox reaches them, unless its network is off. */
  readonly opens?: readonly HostRule[];
  capture(backend: Backend): Promise<Captured>;
}

export interface Captured {
  readonly base: Base;
  /** As it is known by now. */
  readonly start?: StartingPoint;
  /** What the caller should know of it, a sentence each. */
  readonly notes?: readonly string[];
}

/** Whether the next sandbox of its project may be one that was made ahead. Each clone of a repository is fetched anew. */
export function isAlike({ start }: { readonly start?: StartingPoint | undefined }): boolean {
  return start?.from !== "git";
}
