/** Every limit of the program, its unit in its name. */
export const LIMITS = {
  /** Defaults of a sandbox (LIM-1). */
  defaultCpus: 2,
  defaultMemoryBytes: 4 * 1024 ** 3,
  defaultDiskBytes: 10 * 1024 ** 3,
  defaultProcesses: 4096,
  /** What a sandbox gets at run time without asking a person (LIM-5). */
  grantedCpus: 4,
  grantedMemoryBytes: 8 * 1024 ** 3,
  /** Idle minutes after which a sandbox is stopped with a snapshot. */
  defaultIdleMs: 60 * 60_000,
  keptSnapshotMs: 7 * 24 * 3_600_000,

  /** Labels of one sandbox. There are few, because every list of sandboxes shows them. */
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
  /** Larger ids, such as those of company directories, are mapped one by one: at most this many users and this many groups. */
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
   * Limits of one sandbox at a time. Each command, listener and watch is a connection to process 1, which takes 256: together they
   * leave 64 for files and ports.
   */
  maxRunningCommands: 128,
  maxAttachedListeners: 32,
  maxFileWatches: 32,
  /** Snapshots of one sandbox that callers asked for. The snapshot that a stop takes is never refused. */
  maxSnapshots: 256,

  /** Capture. */
  liveFolderEntries: 2_000,
  liveFolderBytes: 64 * 1024 ** 2,
  maxLiveFolders: 10,
  maxCapturedBytes: 4 * 1024 ** 3,
  maxCapturedFileBytes: 1024 ** 3,

  /** Comparing. Counting lines is for text that people read; a patch or a merge needs everything. */
  maxCountedFileBytes: 8 * 1024 ** 2,
  /** Bytes of both sides together. A sparse file takes no space in a sandbox, but its copy would. */
  maxCountedBytes: 256 * 1024 ** 2,
  maxPatchFileBytes: 512 * 1024 ** 2,
  maxPatchBytes: 2 * 1024 ** 3,
  patchTimeoutMs: 10 * 60_000,
  /** Ignore rules that a sandbox wrote: how many files of rules count, and how long git may take to apply them. */
  maxRuleFiles: 1_000,
  insideRulesMs: 10_000,

  /** Experiments and promotions. */
  attemptTimeoutMs: 10 * 60_000,
  stageTimeoutMs: 30 * 60_000,
  /** Time to copy the data of a service in reality, and time to load the copy into the service inside. */
  serviceDataMs: 10 * 60_000,
  /** Characters of a command's or check's output that are kept with its result. */
  keptCheckOutput: 16_384,
  /** How often a promotion is planned anew when reality moves under it. */
  promotionTries: 3,
  listedChanges: 10_000,
  listedLeftOut: 1_000,
  /** How long old contents are kept for an undo. */
  keptPromotionMs: 90 * 24 * 3_600_000,

  /** Approvals. */
  approvalMs: 10 * 60_000,
  waitingApprovals: 256,
  /** A person does not read a longer question before answering it. */
  questionCharacters: 8_192,

  /** Audit. */
  waitingAuditRecords: 50_000,
  auditBatch: 500,
  auditPage: 1_000,
  /** How long commands that people run wait to be recorded together. */
  auditSoonMs: 25,
  /** How long reports may take to reach the disk where no caller waits for them. */
  auditSettleMs: 250,
  /** Pause before reports that could not be written are tried again. */
  auditRetryMs: 1_000,
  auditArgumentCharacters: 4_096,

  /** The gateway of one sandbox. Its connections and those of the proxy together stay below what process 1 forwards. */
  gatewayConnections: 48,
  gatewayBodyBytes: 256 * 1024,
  gatewayJsonDepth: 64,
  gatewayHeadBytes: 16 * 1024,
  gatewayHeadMs: 10_000,
  gatewayRequestMs: 30_000,
  /** How long a request above the limit waits before it is refused. */
  gatewayPauseMs: 100,
  /** How long a report may wait to be recorded before its sender is told that it is not. */
  decisionMs: 1_000,
  /** How often the number of refused requests is recorded. */
  droppedEveryMs: 10_000,
  waitingQuestions: 16,
  /** Siblings of a project that ask or are asked at once; requests in a chain that wait for each other; requests that wait for one sibling. */
  coordinatingSiblings: 16,
  coordinationDepth: 4,
  coordinationInbox: 32,

  /** Requests of one sandbox to model APIs at once: fewer than the gateway's connections, so that other requests get through. */
  modelRequests: 24,
  modelBodyBytes: 32 * 1024 ** 2,
  /** Bodies of all requests of one sandbox together. */
  modelTogetherBytes: 128 * 1024 ** 2,
  /** Parsing a body holds up the server for all sandboxes, so a body may hold only this many values, nested this deep. */
  modelJsonValues: 1_000_000,
  modelJsonDepth: 512,
  modelAnswerBytes: 64 * 1024 ** 2,
  modelEventCharacters: 16 * 1024 ** 2,
  /** How long the provider may send no byte of its answer. */
  modelSilenceMs: 10 * 60_000,

  /** The proxy of one sandbox. */
  egressConnections: 192,
  egressBytes: 64 * 1024 ** 3,
  egressHeadBytes: 32 * 1024,
  /** How long the head of a request, or the first message of a tunnel, may take to arrive. */
  egressHeadMs: 15_000,
  /** How long a connection may carry no byte in either direction. */
  egressIdleMs: 15 * 60_000,
  egressResolveMs: 6_000,
  /** Names looked up at once. Few threads look names up for all sandboxes, and a name without an answer keeps one of them for long. */
  egressResolving: 4,
  egressDialMs: 15_000,
  /** How many addresses of one name the proxy tries. */
  egressAddresses: 4,
  /** Requests within the time: each is recorded, and a sandbox must not fill the disk with records. */
  egressRequests: 3_000,
  egressRequestsMs: 10_000,
  /** How many closed registries `viv create` names, and how long looking up their names may take. */
  closedRegistries: 8,
  closedRegistriesMs: 1_000,
  /** How often the proxy compares the bytes sent with the limit. */
  egressWatchMs: 1_000,
  /** By when the resolver inside is told whether a name exists; libc inside waits for 5 seconds. */
  egressNameMs: 4_000,
  /** Names whose existence is remembered, and for how long. */
  egressNamesKept: 512,
  egressNameKeptMs: { exists: 60_000, missing: 10_000, unknown: 2_000 },
  /** Different names below one pattern within the time. */
  egressNames: 120,
  egressNamesMs: 60_000,
  /** Events about network decisions within the time; the same decision makes one event. */
  networkEvents: 60,
  networkEventsMs: 60_000,

  /** Requests that are held until a person approves them: how long the sender waits, and how large a body may be. */
  effectHoldMs: 60_000,
  heldBodyBytes: 8 * 1024 ** 2,
  /** Bodies of all held requests of one sandbox together. */
  heldTogetherBytes: 64 * 1024 ** 2,

  /** Server. */
  maxBodyBytes: 1024 ** 2,
  maxUploadBytes: 10 * 1024 ** 3,
  maxDownloadBytes: 64 * 1024 ** 3,
  maxConnections: 1024,
  maxEventListeners: 256,
  eventListenerBufferBytes: 1024 ** 2,
  eventRetentionRows: 200_000,
  /** How long a change waits while another process holds the database. */
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
  /** A sandbox that belongs to one caller: how long it waits for its first command, and how long it stays once that caller has gone. */
  expectedCallerMs: 30_000,
  goneCallerMs: 2_000,
  /** First pause before the server tries again to end a sandbox after a failure. */
  retryEveryMs: 2_000,
  /** How often the server looks whether storage that a full disk stopped can be opened again. */
  mendEveryMs: 3_000,
  launchTimeoutMs: 30_000,
  /** How long process 1 of a sandbox may take for a request that it can answer at once. */
  cellAnswerMs: 10_000,
  /** How long the cell host may be silent while the server waits for its answer. */
  cellSilenceMs: 12_000,
  /** How often within the time the server starts the cell host again before it gives up. */
  helperRestarts: 3,
  helperRestartsMs: 60_000,
  stopGraceMs: 2_000,
  shutdownMs: 30_000,
} as const;
