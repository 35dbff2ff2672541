/** Limits of what is shown to people; a part of LIMITS. */
export const VIEW_LIMITS = {
  /** Processes of a sandbox that are listed, and bytes of the arguments of each. */
  shownProcesses: 1_000,
  shownProcessBytes: 4_096,
  /** How often the use of the machine is noted, and how many notes are kept: a day. */
  machineSampleMs: 60_000,
  machineSamples: 1_440,
} as const;
