/** Limits of automations and of the webhooks that start them; a part of LIMITS. */
export const AUTOMATION_LIMITS = {
  automationTaskCharacters: 8_000,
  maxAutomations: 500,
  defaultBatchMs: 2_000,
  leastPollMs: 1_000,
  remotePollMs: 10 * 60_000,
  checkPollMs: 60 * 60_000,
  remoteTimeoutMs: 60_000,
  /** For lines that only look, and so run in reality. */
  directLookMs: 60_000,
  /** Timers look at the clock at least so often: it may be set, and the machine may sleep. */
  clockLookMs: 60_000,
  /** Firings that are kept of one automation, and listed at most. */
  keptFirings: 1_000,
  listedFirings: 1_000,
  reportedFirings: 500,
  /** Of what was seen: texts of one firing, and characters of each. */
  seenTexts: 20,
  seenCharacters: 2_000,
  /** Firings one after the other that an automation caused itself, until it is muted. */
  selfCausedFirings: 3,
  /** How long after a promotion a change of its files counts as its own. */
  ownChangeMs: 60 * 60_000,
  /** How long after a promotion a line in a log counts as caused by it. */
  ownLogMs: 30_000,
  /** Files that a trigger looks at, and folders that it watches. */
  watchedFiles: 50_000,
  watchedFolders: 5_000,
  /** Where folders can't be watched, files are looked at so often. */
  scanEveryMs: 60_000,
  /** Webhooks. */
  hookBodyBytes: 64 * 1024,
  hookAgeMs: 5 * 60_000,
  waitingHooks: 1_000,
  /** Logs: bytes read at once, of one line, and behind which the rest is passed over. */
  logReadBytes: 256 * 1024,
  logLineBytes: 16 * 1024,
  logBehindBytes: 16 * 1024 ** 2,
} as const;
