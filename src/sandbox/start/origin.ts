/** What a sandbox is made from, and what follows from that. */
import type { BroughtBase, VolumeAhead } from "../../machine/capture/capture.ts";
import type { Backend } from "../../machine/backends.ts";
import type { HostRule } from "../../base/schema/network.ts";
import type { StartingPoint } from "../../base/schema/start.ts";
import type { Base } from "../../base/store/rows.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { CreateInput } from "../../base/schema/contracts.ts";
import { openProject, type ProjectView } from "../projects/projects.ts";
import { bringBase, captureBase, type CaptureParts } from "../projects/service-data.ts";
import { emptyBase, openWorkspace } from "../projects/workspaces.ts";
import type { Parts } from "../shared/parts.ts";
import type { Composition } from "./composition.ts";

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

type OriginParts = CaptureParts & Pick<Parts, "state" | "uid">;

const OWN_USER = "Its commands run with the id of the server's own user, because a server of root alone can give them another one.";

/** What the input names, but for a repository, which is cloned first. */
export async function originOf(parts: OriginParts, composition: Composition, { project, empty }: CreateInput): Promise<Origin> {
  if (empty === true) {
    const view = await openWorkspace(parts, "empty");
    const capture = async (backend: Backend): Promise<Captured> => ({
      base: await emptyBase(parts, view, backend, composition.emptyUser(backend), "lasting"),
      notes: backend.driver.capabilities.allUsers ? [] : [OWN_USER],
    });
    return { view, start: { from: "empty" }, capture };
  }
  if (project === undefined) throw new VivError("internal", "A sandbox is made from nothing.");
  const view = await openProject(parts.store, project, parts.state);
  return {
    view,
    capture: async (backend, ahead) =>
      ahead === undefined ? { base: await captureBase(parts, view, backend, "fresh") } : bringBase(parts, view, backend, ahead),
  };
}
