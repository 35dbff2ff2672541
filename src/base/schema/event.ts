import { z } from "zod";
import { SandboxId } from "./ids.ts";

export const EventType = z
  .enum([
    "server.started",
    "server.stopped",
    "sandbox.creating",
    "sandbox.running",
    "sandbox.paused",
    "sandbox.resumed",
    "sandbox.completing",
    "sandbox.completed",
    "sandbox.failed",
    "sandbox.removed",
    "sandbox.extended",
    "sandbox.limited",
    "sandbox.refreshed",
    "sandbox.adopted",
    "sandbox.damaged",
    "command.started",
    "command.ended",
    "service.failed",
    "snapshot.created",
    "snapshot.restored",
    "snapshot.removed",
    "job.queued",
    "job.running",
    "job.succeeded",
    "job.failed",
    "experiment.started",
    "experiment.attempt",
    "experiment.ended",
    "experiment.removed",
    "run.created",
    "run.running",
    "run.completing",
    "run.completed",
    "run.failed",
    "promotion.planned",
    "promotion.waiting",
    "promotion.stage",
    "promotion.applied",
    "promotion.failed",
    "promotion.discarded",
    "promotion.undone",
    "approval.asked",
    "approval.answered",
    "backlog.added",
    "policy.changed",
    "network.changed",
    "network.allowed",
    "network.denied",
    "model.refused",
    "project.trusted",
    "disk.watched",
    "snapshot.damaged",
    "storage.damaged",
    "storage.mended",
    "reconciled",
  ])
  .describe("What happened.");
export type EventType = z.infer<typeof EventType>;

export const VivEvent = z
  .object({
    sequence: z.number().int().describe("Position in the log; only ever grows."),
    at: z.string().describe("ISO time."),
    type: EventType,
    sandbox: SandboxId.nullable().describe("The sandbox it is about."),
    data: z.record(z.string(), z.json()).describe("Details."),
  })
  .describe("Something that happened.")
  .meta({ id: "Event" });
export type VivEvent = z.infer<typeof VivEvent>;
