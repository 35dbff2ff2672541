/** Every limit of the program, its unit in its name. */
import { AUTOMATION_LIMITS } from "./automation-limits.ts";
import { STORE_LIMITS } from "./store-limits.ts";
import { VIEW_LIMITS } from "./view-limits.ts";

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
  /** Sandboxes made ahead: of one project, of all, and how much of what changed since is brought into one. */
  sparesOfProject: 8,
  spares: 16,
  broughtFiles: 200,
  broughtBytes: 4 * 1024 ** 2,
  /** A project has more than one made ahead while more than this share of the machine's memory is free. */
  sparesFreeMemoryShare: 0.25,
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
  /** Snapshots up to which an agent inside may take more: the rest is for people and for the server. */
  maxAgentSnapshots: 64,
  /** Tasks that agents of one sandbox may leave in the backlog. */
  maxBacklogTasks: 500,

  /** Agents have hundreds of megabytes. */
  agentInstallTimeoutMs: 15 * 60_000,
  /** For an agent's program to say its version, on a busy machine. */
  agentProbeTimeoutMs: 60_000,

  /** Desktops. */
  maxDesktopSide: 4096,
  maxDesktopPixels: 4096 * 4096,
  /** Clipboards and names that a screen or a viewer may send. */
  maxDesktopTextBytes: 1024 ** 2,
  maxDesktopActions: 100,
  maxTypedCharacters: 10_000,
  defaultDesktopWaitMs: 10_000,
  maxDesktopWaitMs: 60_000,
  /** For a screen to come up, and for it to answer. */
  desktopStartMs: 20_000,
  desktopAnswerMs: 10_000,
  /** Pages that show one desktop at a time. */
  maxDesktopViewers: 16,
  maxListedWindows: 100,
  /** A connection to a screen that was not used for so long is closed. */
  desktopIdleMs: 60_000,
  /** Jobs. A request that carries the code escapes characters of it, and has to fit into a body. */
  jobCodeBytes: 512 * 1024,
  defaultJobMs: 10 * 60_000,
  mostJobMs: 24 * 3_600_000,
  /** What is kept of each stream of a job: the last bytes. */
  jobOutputBytes: 1024 ** 2,
  waitingJobs: 10_000,
  /** Jobs that have ended: how many are kept, for how long, and how large their code and output may be together. */
  keptJobs: 10_000,
  keptJobMs: 7 * 24 * 3_600_000,
  keptJobBytes: 256 * 1024 ** 2,
  /** Pause before a job is tried again that the machine had no room for. */
  jobAgainMs: 500,
  /** Bytes of output that wait for one listener. What comes beyond is dropped for it. */
  jobListenerBytes: 4 * 1024 ** 2,

  ...AUTOMATION_LIMITS,
  ...STORE_LIMITS,
  ...VIEW_LIMITS,

  /** Notebooks. */
  maxContexts: 16,
  maxCodeCharacters: 1024 ** 2,
  keptExecutions: 50,
  /** Executions of one sandbox on the disk together. */
  keptExecutionBytes: 64 * 1024 ** 2,
  executionOutputBytes: 8 * 1024 ** 2,
  executionOutputs: 10_000,
  maxKernelMessageBytes: 32 * 1024 ** 2,
  /** Python takes its time on a busy machine. */
  notebookStartMs: 60_000,
  notebookAnswerMs: 30_000,

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

  /** Files that a chat client gives with a task (MCP). */
  maxGivenFiles: 1_000,
  maxGivenFileBytes: 32 * 1024 ** 2,
  maxGivenBytes: 64 * 1024 ** 2,
  /** Longest message of a chat client: files are longer in base64, and what is too much is refused by name, not cut off. */
  maxToolMessageBytes: 256 * 1024 ** 2,
  /** What a tool gives back into a conversation; the rest is a resource, or is saved. */
  toolTextCharacters: 12_000,
  toolDownloadBytes: 1024 ** 2,
  /** Pictures in one answer of a tool. Model APIs take none that is larger, or has longer sides. */
  toolPictures: 8,
  toolPictureBytes: 3 * 1024 ** 2,
  toolPictureSide: 8_000,
  maxSavedBytes: 1024 ** 3,
  /** Most clients wait a minute for a tool, some less; without progress none waits longer. */
  toolAnswerMs: 25_000,
  toolAnswerWithProgressMs: 45_000,
  /** For clients of which it is known that progress keeps them waiting. */
  toolAnswerToPatientMs: 10 * 60_000,
  toolProgressMs: 4_000,

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
  /** Commands that people run are recorded in the next pause of this length: those that follow each other together, and not later than this. */
  auditPauseMs: 2,
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
  /** A tool call that takes longer than this is answered as a stream, with a sign of life each time. */
  toolSignMs: 5_000,
  /** How long a report may wait to be recorded before its sender is told that it is not. */
  decisionMs: 1_000,
  /** How often the number of refused requests is recorded. */
  droppedEveryMs: 10_000,
  waitingQuestions: 16,
  /** Siblings of a project that ask or are asked at once; requests in a chain that wait for each other; requests that wait for one sibling. */
  coordinatingSiblings: 16,
  coordinationDepth: 4,
  coordinationInbox: 32,

  /** Conversations of runs: how much of one record's text is kept, and the bounds of what readers may ask for. */
  recordCharacters: 256 * 1024,
  recordNameCharacters: 200,
  defaultContextTokens: 20_000,
  leastContextTokens: 200,
  mostContextTokens: 1_000_000,
  /** What an agent gets of a conversation that it reads from inside, if it does not say, and at most. */
  insideContextTokens: 4_000,
  mostInsideContextTokens: 32_000,
  conversationQueryCharacters: 1_000,
  conversationHits: 20,
  mostConversationHits: 100,
  /** How long a search waits until new records can be found by meaning. */
  meaningWaitMs: 5_000,
  /** How long a model API may take for vectors. */
  embeddingMs: 30_000,
  /** How long one may take for all summaries of a view together, and to judge whether an agent left its task. */
  summariesMs: 20_000,
  judgeMs: 30_000,

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
  /** How long a provider may take to say whether it has a model, and how long it is not asked again. */
  modelLookMs: 2_000,
  modelOfferedMs: 10 * 60_000,
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
  /** From so many bytes on that are still to come, the body of an answer is moved without the server. */
  egressMovedBytes: 256 * 1024,
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

  /** The dashboard: for how long a link opens it, for how long a browser stays logged in, and how many there are of both. */
  linkMs: 5 * 60_000,
  sessionMs: 30 * 24 * 3_600_000,
  sessionSeenEveryMs: 10 * 60_000,
  maxSessions: 64,
  /** Tried first where no other port was asked for. */
  dashboardPort: 7411,
  failedLogins: 20,
  failedLoginsMs: 60_000,

  /** Previews: for how long a link lets a browser in, for how long one stays in that came without the dashboard, and how many there are. */
  previewLinkMs: 2 * 60_000,
  previewMs: 24 * 3_600_000,
  maxPreviewLinks: 256,
  maxPreviews: 512,
  /** How long a program inside may take for the head of its answer, and how large it may be. */
  previewAnswerMs: 5 * 60_000,
  previewHeadBytes: 64 * 1024,
  /** What is read of the kernel's table of listeners inside. */
  maxPortTableBytes: 256 * 1024,

  /** Notifications: how many a minute, before the rest of the minute becomes one; how long one is tried, and how often. */
  notificationsPerMinute: 20,
  notificationsMs: 24 * 3_600_000,
  notificationTries: 12,
  notificationSendMs: 20_000,
  /** Of one channel at once; and rows of all channels that are kept. */
  notificationsAtOnce: 4,
  notificationsKept: 2_000,
  notificationsShown: 200,
  /** Characters of what is shown. */
  notificationTitleCharacters: 100,
  notificationTextCharacters: 300,
  pushBrowsers: 64,

  /** Server. */
  maxBodyBytes: 1024 ** 2,
  maxUploadBytes: 10 * 1024 ** 3,
  maxDownloadBytes: 64 * 1024 ** 3,
  maxConnections: 1024,
  maxEventListeners: 256,
  eventListenerBufferBytes: 1024 ** 2,
  eventRetentionRows: 200_000,
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
  /** How long the clone of a repository may take if the caller does not say, and what git is asked about it afterwards. */
  cloneTimeoutMs: 10 * 60_000,
  cloneQuestionMs: 30_000,
  /** How long process 1 of a sandbox may take for a request that it can answer at once. */
  cellAnswerMs: 10_000,
  /** How long the cell host may be silent while the server waits for its answer. */
  cellSilenceMs: 12_000,
  /** How often within the time the server starts the cell host again before it gives up. */
  helperRestarts: 3,
  helperRestartsMs: 60_000,
  stopGraceMs: 2_000,
  /** How long a write that failed for a full disk or a held database waits before it is tried again: at first, and at most. */
  firstRetryMs: 250,
  mostRetryMs: 5_000,
  /** Of a run: events that are kept, and bytes of output that is kept although it can't be understood. */
  runEvents: 1_000_000,
  runRawBytes: 1024 ** 2,
  /** A message to an agent. */
  runMessageCharacters: 10_000,
  /** Messages to one agent that wait. */
  runMessages: 100,
  runTaskCharacters: 100_000,
  /** Reviews that one run may have, how long each may take, and how much of the change a reviewer is told. */
  reviewsOfRun: 16,
  reviewTimeoutMs: 15 * 60_000,
  reviewPatchCharacters: 60_000,
  /** What an adapter may know of an agent that works. */
  runSessionCharacters: 512 * 1024,
  /** Lines of an agent's output that are written down in one change. */
  runLinesAtOnce: 100,
  /** Answers that an agent may leave unread before the server stops listening to it. */
  runUnreadBytes: 1024 ** 2,
  /** Snapshots of a run that are kept. */
  runSnapshots: 20,
  /** How much of its conversation an agent gets that begins anew or takes over, and the most that may be asked for. */
  restartTokens: 8_000,
  mostHandedTokens: 200_000,
  /** How often the guardian looks at a run, beside its events. */
  guardianEveryMs: 5_000,
  /** How often the server looks whether an agent lives, and after how long without an answer it counts as degraded, then as failed. */
  heartbeatMs: 15_000,
  degradedMs: 45_000,
  unheardMs: 90_000,
  /** How long an agent may take to end by itself once it has nothing more to do. */
  agentEndMs: 10_000,
  /** The longest that an agent may work, where no time was given. */
  runTimeoutMs: 30 * 60_000,
  shutdownMs: 30_000,
} as const;
