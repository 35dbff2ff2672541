/** Every limit of the program, its unit in its name. */
export const LIMITS = {
  /** Defaults of a sandbox (LIM-1). */
  defaultCpus: 2,
  defaultMemoryBytes: 4 * 1024 ** 3,
  defaultDiskBytes: 10 * 1024 ** 3,
  defaultProcesses: 4096,
  /** Granted at run time without a person (LIM-5). */
  grantedCpus: 4,
  grantedMemoryBytes: 8 * 1024 ** 3,
  /** Idle minutes after which a sandbox is stopped with a snapshot. */
  defaultIdleMs: 60 * 60_000,
  keptSnapshotMs: 7 * 24 * 3_600_000,

  /** Every list of sandboxes shows them. */
  maxLabels: 64,

  /** Machine-wide ceilings. */
  maxSandboxes: 512,
  minFreeMemoryBytes: 256 * 1024 ** 2,
  minFreeDiskBytes: 1024 ** 3,
  minFreeDiskShare: 0.05,
  minFreeFiles: 10_000,

  /** Uid ranges of sandboxes, one each. */
  uidRangeStart: 0x70000000,
  uidRangeSize: 65_536,
  /** Larger ids, as directories of companies give them, are mapped one by one: so many of each kind, apart from the ranges. */
  largeIdsStart: 0x6f000000,
  largeIds: 128,

  /** Commands. */
  maxArgumentBytes: 512 * 1024,
  maxEnvironmentBytes: 256 * 1024,
  commandLogBytes: 16 * 1024 ** 2,
  /** Logs of one sandbox together; the oldest go first. */
  sandboxLogBytes: 256 * 1024 ** 2,
  capturedOutputBytes: 1024 ** 2,
  /** Commands of one sandbox that are remembered after their end. */
  keptCommands: 10_000,
  /**
   * Of one sandbox at a time. Each is a connection to process 1, which takes 256: together they leave 64 for files and ports.
   */
  maxRunningCommands: 128,
  maxAttachedListeners: 32,
  maxFileWatches: 32,
  /** Of one sandbox, that somebody asked for; the one a stopped sandbox leaves is not refused. */
  maxSnapshots: 256,

  /** Capture. */
  liveFolderEntries: 2_000,
  liveFolderBytes: 64 * 1024 ** 2,
  maxLiveFolders: 10,
  maxCapturedBytes: 4 * 1024 ** 3,
  maxCapturedFileBytes: 1024 ** 3,

  /** Comparing. Counting lines is for text that people read; a patch or a merge needs everything. */
  maxCountedFileBytes: 8 * 1024 ** 2,
  /** Of both sides together: sparse files take no space in a sandbox, their copies would. */
  maxCountedBytes: 256 * 1024 ** 2,
  maxPatchFileBytes: 512 * 1024 ** 2,
  maxPatchBytes: 2 * 1024 ** 3,
  patchTimeoutMs: 10 * 60_000,
  /** Of ignore rules that were made in a sandbox: files with rules, and how long git may take to apply them. */
  maxRuleFiles: 1_000,
  insideRulesMs: 10_000,

  /** Experiments and promotions. */
  attemptTimeoutMs: 10 * 60_000,
  stageTimeoutMs: 30 * 60_000,
  /** Copying data of a service, and bringing it into one. */
  serviceDataMs: 10 * 60_000,
  /** Characters of a command's or check's output that are kept with its result. */
  keptCheckOutput: 16_384,
  /** How often a promotion is planned anew when reality moves under it. */
  promotionTries: 3,
  listedChanges: 10_000,
  listedLeftOut: 1_000,
  /** Old contents are kept that long for an undo. */
  keptPromotionMs: 90 * 24 * 3_600_000,

  /** Approvals. */
  approvalMs: 10 * 60_000,
  waitingApprovals: 256,
  /** Longer ones nobody reads before answering. */
  questionCharacters: 8_192,

  /** Audit. */
  waitingAuditRecords: 50_000,
  auditBatch: 500,
  auditPage: 1_000,
  /** How long commands that people run wait to be recorded together. */
  auditSoonMs: 25,
  /** How long reports that nobody waits for may be on their way to the disk. */
  auditSettleMs: 250,
  /** Pause before reports that could not be written are tried again. */
  auditRetryMs: 1_000,
  auditArgumentCharacters: 4_096,

  /** The gateway; of one sandbox. With those of the proxy, connections stay below what process 1 forwards. */
  gatewayConnections: 48,
  gatewayBodyBytes: 256 * 1024,
  gatewayJsonDepth: 64,
  gatewayHeadBytes: 16 * 1024,
  gatewayHeadMs: 10_000,
  gatewayRequestMs: 30_000,
  /** Before one request too many is turned away. */
  gatewayPauseMs: 100,
  /** How long a report may wait to be recorded before its sender is told that it is not. */
  decisionMs: 1_000,
  /** How often what was turned away is recorded. */
  droppedEveryMs: 10_000,
  waitingQuestions: 16,
  /** Siblings of a project that ask or are asked at once, requests that wait for each other, requests that wait for one. */
  coordinatingSiblings: 16,
  coordinationDepth: 4,
  coordinationInbox: 32,

  /** Requests to model APIs; the number is of one sandbox, and leaves connections of the gateway for the rest. */
  modelRequests: 24,
  modelBodyBytes: 32 * 1024 ** 2,
  /** Of one sandbox together. */
  modelTogetherBytes: 128 * 1024 ** 2,
  /** What parsing a body takes is paid by everybody. */
  modelJsonValues: 1_000_000,
  modelJsonDepth: 512,
  modelAnswerBytes: 64 * 1024 ** 2,
  modelEventCharacters: 16 * 1024 ** 2,
  /** Without a byte of an answer. */
  modelSilenceMs: 10 * 60_000,

  /** The proxy; of one sandbox. */
  egressConnections: 192,
  egressBytes: 64 * 1024 ** 3,
  egressHeadBytes: 32 * 1024,
  /** Until the head of a request, or the first message of a tunnel, must be there. */
  egressHeadMs: 15_000,
  /** Without a byte either way. */
  egressIdleMs: 15 * 60_000,
  egressResolveMs: 6_000,
  /** Names looked up at once: few threads do that for all sandboxes, and a name that nobody answers for takes one of them for long. */
  egressResolving: 4,
  egressDialMs: 15_000,
  /** Addresses of one name that are tried. */
  egressAddresses: 4,
  /** Requests within the time: each is recorded, and the disk is not a sandbox's to fill. */
  egressRequests: 3_000,
  egressRequestsMs: 10_000,
  /** Closed registries that a new sandbox's maker is told of, and until when their names must be known. */
  closedRegistries: 8,
  closedRegistriesMs: 1_000,
  /** How often bytes are looked at. */
  egressWatchMs: 1_000,
  /** Until the resolver inside is told whether a name exists; libc inside waits for 5 seconds. */
  egressNameMs: 4_000,
  /** Names whose existence is remembered, and for how long. */
  egressNamesKept: 512,
  egressNameKeptMs: { exists: 60_000, missing: 10_000, unknown: 2_000 },
  /** Different names below one pattern within the time. */
  egressNames: 120,
  egressNamesMs: 60_000,
  /** Events of decisions within the time; the same decision is told once. */
  networkEvents: 60,
  networkEventsMs: 60_000,

  /** Requests that are held until a person says yes: how long their sender waits, and how much they send. */
  effectHoldMs: 60_000,
  heldBodyBytes: 8 * 1024 ** 2,
  /** Of one sandbox together. */
  heldTogetherBytes: 64 * 1024 ** 2,

  /** Server. */
  maxBodyBytes: 1024 ** 2,
  maxUploadBytes: 10 * 1024 ** 3,
  maxDownloadBytes: 64 * 1024 ** 3,
  maxConnections: 1024,
  maxEventListeners: 256,
  eventListenerBufferBytes: 1024 ** 2,
  eventRetentionRows: 200_000,
  /** How long a change waits for a database that something else holds. */
  storeBusyMs: 5_000,
  /** Backups of the database: how often, how many, and how large they may be together. */
  backupEveryMs: 24 * 3_600_000,
  backups: 3,
  backupsBytes: 1024 ** 3,
  /** Pause before records of commands that could not be written are tried again, and how many wait for that. */
  recordAgainMs: 1_000,
  waitingCommandRecords: 10_000,
  reconcileEveryMs: 60_000,
  /** How often a server looks whether its state folder is still there. */
  ownershipEveryMs: 500,
  /** How long a sandbox that is there for one caller waits for its first command, and stays once that caller has gone. */
  expectedCallerMs: 30_000,
  goneCallerMs: 2_000,
  /** First pause before an end that broke off is tried again. */
  retryEveryMs: 2_000,
  /** How often storage that a full disk stopped is looked for. */
  mendEveryMs: 3_000,
  launchTimeoutMs: 30_000,
  /** How long process 1 of a sandbox may take to answer what it answers at once. */
  cellAnswerMs: 10_000,
  /** How long the cell host may be silent while somebody waits for it. */
  cellSilenceMs: 12_000,
  /** How often within the time it is started again before the server gives up. */
  helperRestarts: 3,
  helperRestartsMs: 60_000,
  stopGraceMs: 2_000,
  shutdownMs: 30_000,
} as const;
