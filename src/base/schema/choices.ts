/** Values that may be chosen from, once: the schemas take them, and the command line offers them. Apart from the schemas, so that it starts without zod. */

export const SANDBOX_STATES = ["pending", "creating", "running", "paused", "completing", "completed", "failed"] as const;
export const NETWORK_MODES = ["off", "allow-list", "public"] as const;
export const EFFECTS_MODES = ["record", "hold"] as const;
export const AUTONOMY_LEVELS = [1, 2, 3] as const;
export const YOLO_LEVELS = [1, 2, 3, 4] as const;
export const ROLES = ["worker", "reviewer", "coordinator"] as const;
/** Who chooses the winner of an experiment. */
export const PICKS = ["auto", "ask", "none"] as const;
/** Which sandboxes of an experiment stay. */
export const KEEPS = ["all", "winner", "none"] as const;
/** By what attempts are ranked. */
export const RANKING_RULES = ["checks", "tests", "protected", "measure", "diff", "time", "cpu", "memory"] as const;
