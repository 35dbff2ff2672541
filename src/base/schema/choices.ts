/** Values that may be chosen from, once: the schemas take them, and the command line offers them. Apart from the schemas, so that it starts without zod. */

export const SANDBOX_STATES = ["pending", "creating", "running", "paused", "completing", "completed", "failed"] as const;
export const NETWORK_MODES = ["off", "allow-list", "public"] as const;
export const EFFECTS_MODES = ["record", "hold"] as const;
export const AUTONOMY_LEVELS = [1, 2, 3] as const;
export const YOLO_LEVELS = [1, 2, 3, 4] as const;
export const ROLES = ["worker", "reviewer", "coordinator"] as const;
/** Agents that the agent of a run may ask. */
export const COMPANION_ROLES = ["reviewer"] as const;
/** Who chooses the winner of an experiment. */
export const PICKS = ["auto", "ask", "none"] as const;
/** Which sandboxes of an experiment stay. */
export const KEEPS = ["all", "winner", "none"] as const;
/** By what attempts are ranked. */
export const RANKING_RULES = ["checks", "tests", "protected", "measure", "diff", "time", "cpu", "memory", "cost"] as const;
/** States of a run, as of a sandbox. */
export const RUN_STATES = ["pending", "creating", "running", "paused", "completing", "completed", "failed"] as const;
export const RUN_OUTCOMES = ["done", "failed", "timeout", "cancelled", "lost"] as const;
/** What an agent's tools do. */
export const TOOL_KINDS = ["command", "edit", "read", "search", "fetch", "agent", "other"] as const;
/** What an agent does that meets a rate limit of its model API. */
export const RATE_LIMIT_MODES = ["wait", "stop"] as const;
/** What an agent waits for. */
export const WAITS = ["rate_limit", "retry", "person"] as const;
/** When a message gets to an agent. */
export const MESSAGE_WAYS = ["steer", "after-turn", "urgent"] as const;
/** How far the guardian of a run may go: not at all, up to asking a person, all the way. */
export const GUARDIAN_MODES = ["off", "warn", "full"] as const;
/** What the guardian looks for; each can be switched off for a run. An agent that died is told as `death`, which is none of these. */
export const GUARDIAN_DETECTORS = [
  "silence",
  "repeat",
  "alternation",
  "same_error",
  "no_progress",
  "monologue",
  "spending",
  "drift",
  "damage",
  "flood",
  "budget",
  "steps",
  "disk",
  "memory",
] as const;
/** What the guardian does, in this order. */
export const GUARDIAN_STEPS = ["message", "ask", "pause", "rollback", "restart", "stop"] as const;
/** What a job's code is written in, and where a job is. */
export const JOB_KINDS = ["python", "shell", "typescript", "gui"] as const;
export const JOB_STATES = ["queued", "running", "succeeded", "failed"] as const;
/** What an automation may do, the least first. */
export const AUTHORITIES = ["alert-only", "propose-and-wait", "act-and-notify", "act-and-log"] as const;
export const TRIGGER_KINDS = ["files", "schedule", "webhook", "commit", "check", "log", "manual"] as const;
export const AUTOMATION_STATES = ["active", "paused", "muted", "broken"] as const;
export const FIRING_STATES = [
  "seen",
  "triaged",
  "working",
  "verified",
  "done",
  "promoted",
  "waiting",
  "alerted",
  "failed",
  "muted",
  "undone",
] as const;
export const TRIAGE_WAYS = ["direct", "sandbox", "propose", "alert"] as const;
/** What an agent of the user's config may speak. */
export const AGENT_PROTOCOLS = ["acp", "command", "claude", "codex", "gemini", "opencode", "pi"] as const;
