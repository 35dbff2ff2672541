// Made from the contracts by scripts/sdk-types.ts.
import type { Json } from "./notebooks.ts";

/** Something that happened. */
export interface VivariumEvent {
  /** Position in the log; only ever grows. */
  sequence: number;
  /** ISO time. */
  at: string;
  /** What happened. */
  type: "server.started" | "server.stopped" | "sandbox.creating" | "sandbox.running" | "sandbox.paused" | "sandbox.resumed" | "sandbox.completing" | "sandbox.completed" | "sandbox.failed" | "sandbox.removed" | "sandbox.extended" | "sandbox.limited" | "sandbox.refreshed" | "sandbox.adopted" | "sandbox.damaged" | "command.started" | "command.ended" | "service.failed" | "snapshot.created" | "snapshot.restored" | "snapshot.removed" | "job.queued" | "job.running" | "job.succeeded" | "job.failed" | "experiment.started" | "experiment.attempt" | "experiment.ended" | "experiment.removed" | "automation.changed" | "automation.notice" | "firing.seen" | "firing.triaged" | "firing.working" | "firing.verified" | "firing.done" | "firing.promoted" | "firing.waiting" | "firing.alerted" | "firing.failed" | "firing.muted" | "firing.undone" | "run.created" | "run.running" | "run.completing" | "run.completed" | "run.failed" | "promotion.planned" | "promotion.waiting" | "promotion.stage" | "promotion.applied" | "promotion.failed" | "promotion.discarded" | "promotion.undone" | "approval.asked" | "approval.answered" | "backlog.added" | "policy.changed" | "network.changed" | "network.allowed" | "network.denied" | "model.refused" | "project.trusted" | "disk.watched" | "snapshot.damaged" | "storage.damaged" | "storage.mended" | "reconciled";
  /** The sandbox it is about. */
  sandbox: string | null;
  /** Details. */
  data: { [name: string]: Json };
}
