/**
 * Where a review happens: a fork of what the run started from, with exactly its promotable change. Programs, settings and ignored
 * files are those of reality: the agent that made the change can't have replaced what judges it. The place can only be read.
 */
import { join } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { ExperimentRow, RunRow, SandboxRow } from "../../base/store/rows.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Clones } from "../checks/clones.ts";
import type { Verification } from "../checks/verification.ts";
import { openChange, type AttemptChange } from "../experiments/change.ts";
import { reviewKey, reviewText, type ReviewRequest } from "./review-text.ts";

export interface PlaceParts {
  readonly parts: Pick<Parts, "backends" | "reach">;
  readonly sandboxes: Sandboxes;
  readonly clones: Clones;
  readonly verification: Verification;
  readonly temporary: string;
}

/** The change of a run as it is now, and what is asked about it. */
export interface Question {
  readonly key: string;
  readonly text: string;
  /** A sandbox in which that change can be read. */
  place(name: string, program: string): Promise<SandboxRow>;
  close(): void;
}

export async function openQuestion(
  all: PlaceParts,
  asker: RunRow,
  experiment: ExperimentRow,
  role: "reviewer",
  asked: ReviewRequest,
): Promise<Question> {
  const { sandboxes, parts, temporary } = all;
  const sandbox = await sandboxes.find(asker.sandbox ?? "");
  const frozen = await sandboxes.snapshot(sandbox.id, undefined);
  const opening = openChange(parts, sandbox, frozen.id, experiment, temporary);
  const close = (): void => {
    opening.close();
    void sandboxes.removeSnapshot(sandbox.id, frozen.id).catch(() => undefined);
  };
  try {
    const change = await opening.change;
    return {
      key: reviewKey(role, asked, change.changes),
      text: reviewText(asker.task, asked, change.changes, await change.patch(4 * LIMITS.reviewPatchCharacters)),
      place: (name, program) => place(all, experiment, change, { name, program, role }),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

async function place(
  { sandboxes, clones, verification, parts }: PlaceParts,
  { id, origin }: ExperimentRow,
  change: AttemptChange,
  { name, program, role }: { readonly name: string; readonly program: string; readonly role: "reviewer" },
): Promise<SandboxRow> {
  if (origin === null) throw new VivError("not_found", "What the run started from is gone.");
  const labels = clones.labels(id, "review");
  const fork = await sandboxes.branch(origin.sandbox, origin.snapshot, labels, { idle: true });
  try {
    const project = projectInside(fork);
    if (change.changes.some(({ path }) => join(project, decodePath(path)) === program))
      throw new VivError("unsupported", "The reviewer's program is a part of the change that it is to review.");
    await verification.apply(fork, change.changes, await change.contents(change.changes));
    const { id: snapshot } = await sandboxes.snapshot(fork.id, undefined);
    parts.reach("review.placed");
    return await sandboxes.branch(fork.id, snapshot, labels, { sealed: true, role, name });
  } finally {
    clones.discard(fork.id);
  }
}
