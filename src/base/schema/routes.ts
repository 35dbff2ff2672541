/** Where every operation is found. Apart from its schemas, so that a client starts without them. */

/** Groups of the documentation, in its order. */
export const TAGS = [
  "sandboxes",
  "commands",
  "files",
  "ports",
  "desktops",
  "notebooks",
  "snapshots",
  "jobs",
  "experiments",
  "automations",
  "agents",
  "runs",
  "conversations",
  "promotions",
  "approvals",
  "policy",
  "network",
  "effects",
  "secrets",
  "models",
  "audit",
  "events",
  "dashboard",
  "server",
] as const;

interface Tagged {
  readonly tag: (typeof TAGS)[number];
}

export interface Route extends Tagged {
  readonly method: "get" | "post" | "put" | "delete";
  /** Path with {name} for the fields of the input that stand in it; the others are query (get, delete) or JSON body. */
  readonly path: string;
}

export interface Stream extends Tagged {
  /** websocket is a GET with Upgrade; any is every method. */
  readonly method: "get" | "post" | "put" | "websocket" | "any";
  readonly path: string;
}

export const ROUTES = {
  createSandbox: { tag: "sandboxes", method: "post", path: "/sandboxes" },
  listSandboxes: { tag: "sandboxes", method: "get", path: "/sandboxes" },
  findSandbox: { tag: "sandboxes", method: "get", path: "/sandboxes/{sandbox}/summary" },
  inspectSandbox: { tag: "sandboxes", method: "get", path: "/sandboxes/{sandbox}" },
  removeSandbox: { tag: "sandboxes", method: "delete", path: "/sandboxes/{sandbox}" },
  stopSandbox: { tag: "sandboxes", method: "post", path: "/sandboxes/{sandbox}/stop" },
  startSandbox: { tag: "sandboxes", method: "post", path: "/sandboxes/{sandbox}/start" },
  pauseSandbox: { tag: "sandboxes", method: "post", path: "/sandboxes/{sandbox}/pause" },
  resumeSandbox: { tag: "sandboxes", method: "post", path: "/sandboxes/{sandbox}/resume" },
  extendSandbox: { tag: "sandboxes", method: "post", path: "/sandboxes/{sandbox}/extend" },
  limitSandbox: { tag: "sandboxes", method: "post", path: "/sandboxes/{sandbox}/limits" },
  forkSandbox: { tag: "sandboxes", method: "post", path: "/sandboxes/{sandbox}/fork" },
  diffSandbox: { tag: "sandboxes", method: "get", path: "/sandboxes/{sandbox}/diff" },
  diffSystem: { tag: "sandboxes", method: "get", path: "/sandboxes/{sandbox}/diff/system" },
  sandboxStatus: { tag: "sandboxes", method: "get", path: "/sandboxes/{sandbox}/status" },
  refreshSandbox: { tag: "sandboxes", method: "post", path: "/sandboxes/{sandbox}/refresh" },
  staleness: { tag: "sandboxes", method: "get", path: "/sandboxes/{sandbox}/staleness" },
  runCommand: { tag: "commands", method: "post", path: "/sandboxes/{sandbox}/run" },
  listCommands: { tag: "commands", method: "get", path: "/sandboxes/{sandbox}/commands" },
  inspectCommand: { tag: "commands", method: "get", path: "/sandboxes/{sandbox}/commands/{command}" },
  killCommand: { tag: "commands", method: "post", path: "/sandboxes/{sandbox}/commands/{command}/kill" },
  listProcesses: { tag: "commands", method: "get", path: "/sandboxes/{sandbox}/processes" },
  inspectNetwork: { tag: "network", method: "get", path: "/sandboxes/{sandbox}/network" },
  changeNetwork: { tag: "network", method: "post", path: "/sandboxes/{sandbox}/network" },
  createSnapshot: { tag: "snapshots", method: "post", path: "/sandboxes/{sandbox}/snapshots" },
  listSnapshots: { tag: "snapshots", method: "get", path: "/sandboxes/{sandbox}/snapshots" },
  removeSnapshot: { tag: "snapshots", method: "delete", path: "/sandboxes/{sandbox}/snapshots/{snapshot}" },
  rollback: { tag: "snapshots", method: "post", path: "/sandboxes/{sandbox}/rollback" },
  listFiles: { tag: "files", method: "get", path: "/sandboxes/{sandbox}/files/list" },
  statFile: { tag: "files", method: "get", path: "/sandboxes/{sandbox}/files/stat" },
  moveFile: { tag: "files", method: "post", path: "/sandboxes/{sandbox}/files/move" },
  removeFile: { tag: "files", method: "post", path: "/sandboxes/{sandbox}/files/remove" },
  makeFolder: { tag: "files", method: "post", path: "/sandboxes/{sandbox}/files/mkdir" },
  openDesktop: { tag: "desktops", method: "post", path: "/sandboxes/{sandbox}/desktop" },
  inspectDesktop: { tag: "desktops", method: "get", path: "/sandboxes/{sandbox}/desktop" },
  closeDesktop: { tag: "desktops", method: "delete", path: "/sandboxes/{sandbox}/desktop" },
  useDesktop: { tag: "desktops", method: "post", path: "/sandboxes/{sandbox}/desktop/actions" },
  listWindows: { tag: "desktops", method: "get", path: "/sandboxes/{sandbox}/desktop/windows" },
  executeCode: { tag: "notebooks", method: "post", path: "/sandboxes/{sandbox}/contexts/{context}/executions" },
  inspectExecution: { tag: "notebooks", method: "get", path: "/sandboxes/{sandbox}/executions/{execution}" },
  listContexts: { tag: "notebooks", method: "get", path: "/sandboxes/{sandbox}/contexts" },
  interruptContext: { tag: "notebooks", method: "post", path: "/sandboxes/{sandbox}/contexts/{context}/interrupt" },
  restartContext: { tag: "notebooks", method: "post", path: "/sandboxes/{sandbox}/contexts/{context}/restart" },
  removeContext: { tag: "notebooks", method: "delete", path: "/sandboxes/{sandbox}/contexts/{context}" },
  openNotebook: { tag: "notebooks", method: "post", path: "/sandboxes/{sandbox}/notebook" },
  listPorts: { tag: "ports", method: "get", path: "/sandboxes/{sandbox}/ports" },
  openPreview: { tag: "ports", method: "post", path: "/sandboxes/{sandbox}/ports/{port}/preview" },
  closePreviews: { tag: "ports", method: "delete", path: "/sandboxes/{sandbox}/previews" },
  scheduleJob: { tag: "jobs", method: "post", path: "/schedule" },
  jobStatus: { tag: "jobs", method: "get", path: "/status/{job_id}" },
  listJobs: { tag: "jobs", method: "get", path: "/jobs" },
  inspectJob: { tag: "jobs", method: "get", path: "/jobs/{job}" },
  cancelJob: { tag: "jobs", method: "post", path: "/jobs/{job}/cancel" },
  startExperiment: { tag: "experiments", method: "post", path: "/experiments" },
  listExperiments: { tag: "experiments", method: "get", path: "/experiments" },
  inspectExperiment: { tag: "experiments", method: "get", path: "/experiments/{experiment}" },
  cancelExperiment: { tag: "experiments", method: "post", path: "/experiments/{experiment}/cancel" },
  retryExperiment: { tag: "experiments", method: "post", path: "/experiments/{experiment}/retry" },
  pickWinner: { tag: "experiments", method: "post", path: "/experiments/{experiment}/pick" },
  removeExperiment: { tag: "experiments", method: "delete", path: "/experiments/{experiment}" },
  addAutomation: { tag: "automations", method: "post", path: "/automations" },
  listAutomations: { tag: "automations", method: "get", path: "/automations" },
  inspectAutomation: { tag: "automations", method: "get", path: "/automations/{automation}" },
  automationSecret: { tag: "automations", method: "post", path: "/automations/{automation}/secret" },
  runAutomation: { tag: "automations", method: "post", path: "/automations/{automation}/run" },
  testAutomation: { tag: "automations", method: "get", path: "/automations/{automation}/test" },
  pauseAutomation: { tag: "automations", method: "post", path: "/automations/{automation}/pause" },
  resumeAutomation: { tag: "automations", method: "post", path: "/automations/{automation}/resume" },
  removeAutomation: { tag: "automations", method: "delete", path: "/automations/{automation}" },
  listFirings: { tag: "automations", method: "get", path: "/firings" },
  inspectFiring: { tag: "automations", method: "get", path: "/firings/{firing}" },
  reportFirings: { tag: "automations", method: "get", path: "/reports/firings" },
  listAgents: { tag: "agents", method: "get", path: "/agents" },
  probeAgent: { tag: "agents", method: "post", path: "/agents/{agent}/probe" },
  installAgent: { tag: "agents", method: "post", path: "/agents/{agent}/install" },
  listRuns: { tag: "runs", method: "get", path: "/runs" },
  inspectRun: { tag: "runs", method: "get", path: "/runs/{run}" },
  sayToRun: { tag: "runs", method: "post", path: "/runs/{run}/messages" },
  listRunMessages: { tag: "runs", method: "get", path: "/runs/{run}/messages" },
  interruptRun: { tag: "runs", method: "post", path: "/runs/{run}/interrupt" },
  stopRun: { tag: "runs", method: "post", path: "/runs/{run}/stop" },
  listRunEvents: { tag: "runs", method: "get", path: "/runs/{run}/events/list" },
  listBacklog: { tag: "runs", method: "get", path: "/backlog" },
  removeBacklogTask: { tag: "runs", method: "delete", path: "/backlog/{task}" },
  readContext: { tag: "conversations", method: "get", path: "/runs/{run}/context" },
  searchConversations: { tag: "conversations", method: "get", path: "/conversations/search" },
  planPromotion: { tag: "promotions", method: "post", path: "/promotions/plan" },
  promote: { tag: "promotions", method: "post", path: "/promotions" },
  listPromotions: { tag: "promotions", method: "get", path: "/promotions" },
  inspectPromotion: { tag: "promotions", method: "get", path: "/promotions/{promotion}" },
  continuePromotion: { tag: "promotions", method: "post", path: "/promotions/{promotion}/continue" },
  discardPromotion: { tag: "promotions", method: "post", path: "/promotions/{promotion}/discard" },
  undoPromotion: { tag: "promotions", method: "post", path: "/promotions/undo" },
  closedRegistries: { tag: "network", method: "get", path: "/network/closed-registries" },
  allowPrivate: { tag: "network", method: "post", path: "/network/private" },
  listApprovals: { tag: "approvals", method: "get", path: "/approvals" },
  inspectApproval: { tag: "approvals", method: "get", path: "/approvals/{approval}" },
  answerApproval: { tag: "approvals", method: "post", path: "/approvals/{approval}/answer" },
  explainPolicy: { tag: "policy", method: "post", path: "/policy/explain" },
  testPolicy: { tag: "policy", method: "get", path: "/policy/test" },
  triageAction: { tag: "policy", method: "post", path: "/policy/triage" },
  agentInstructions: { tag: "policy", method: "get", path: "/policy/agents" },
  importPolicy: { tag: "policy", method: "post", path: "/policy/import" },
  listRules: { tag: "policy", method: "get", path: "/policy/rules" },
  forgetRule: { tag: "policy", method: "delete", path: "/policy/rules/{rule}" },
  decideAction: { tag: "policy", method: "post", path: "/sandboxes/{sandbox}/actions" },
  inspectPolicy: { tag: "policy", method: "get", path: "/sandboxes/{sandbox}/policy" },
  setPolicy: { tag: "policy", method: "post", path: "/sandboxes/{sandbox}/policy" },
  setSecret: { tag: "secrets", method: "post", path: "/secrets/{secret}" },
  listSecrets: { tag: "secrets", method: "get", path: "/secrets" },
  importSecrets: { tag: "secrets", method: "post", path: "/secret-imports" },
  removeSecret: { tag: "secrets", method: "delete", path: "/secrets/{secret}" },
  listEffects: { tag: "effects", method: "get", path: "/effects" },
  usage: { tag: "models", method: "get", path: "/usage" },
  listAudit: { tag: "audit", method: "get", path: "/audit" },
  verifyAudit: { tag: "audit", method: "get", path: "/audit/verify" },
  reportDecision: { tag: "audit", method: "post", path: "/sandboxes/{sandbox}/decisions" },
  listDecisions: { tag: "audit", method: "get", path: "/sandboxes/{sandbox}/decisions" },
  listEvents: { tag: "events", method: "get", path: "/events/list" },
  openDashboard: { tag: "dashboard", method: "post", path: "/dashboard/links" },
  listSessions: { tag: "dashboard", method: "get", path: "/dashboard/sessions" },
  endSession: { tag: "dashboard", method: "delete", path: "/dashboard/sessions/{session}" },
  listNotifications: { tag: "dashboard", method: "get", path: "/notifications" },
  testNotification: { tag: "dashboard", method: "post", path: "/notifications/test" },
  addPushBrowser: { tag: "dashboard", method: "post", path: "/notifications/browsers" },
  removePushBrowser: { tag: "dashboard", method: "delete", path: "/notifications/browsers/{browser}" },
  machineHistory: { tag: "server", method: "get", path: "/history" },
  status: { tag: "server", method: "get", path: "/status" },
  doctor: { tag: "server", method: "get", path: "/doctor" },
  trust: { tag: "server", method: "post", path: "/trust" },
  prune: { tag: "server", method: "post", path: "/prune" },
  shutdown: { tag: "server", method: "post", path: "/shutdown" },
} as const satisfies Record<string, Route>;

/** Routes that carry bytes, events or a conversation instead of one JSON value. */
export const STREAMS = {
  events: { tag: "events", method: "get", path: "/events" },
  runEvents: { tag: "runs", method: "get", path: "/runs/{run}/events" },
  callHook: { tag: "automations", method: "post", path: "/hooks/{automation}" },
  jobOutput: { tag: "jobs", method: "get", path: "/jobs/{job}/output" },
  patch: { tag: "sandboxes", method: "get", path: "/sandboxes/{sandbox}/diff/patch" },
  readFile: { tag: "files", method: "get", path: "/sandboxes/{sandbox}/files/content" },
  writeFile: { tag: "files", method: "put", path: "/sandboxes/{sandbox}/files/content" },
  packFiles: { tag: "files", method: "get", path: "/sandboxes/{sandbox}/files/archive" },
  unpackFiles: { tag: "files", method: "put", path: "/sandboxes/{sandbox}/files/archive" },
  watchFiles: { tag: "files", method: "get", path: "/sandboxes/{sandbox}/files/watch" },
  exec: { tag: "commands", method: "websocket", path: "/sandboxes/{sandbox}/exec" },
  attach: { tag: "commands", method: "websocket", path: "/sandboxes/{sandbox}/commands/{command}/attach" },
  tunnel: { tag: "ports", method: "websocket", path: "/sandboxes/{sandbox}/ports/{port}/tunnel" },
  openPort: { tag: "ports", method: "websocket", path: "/sandboxes/{sandbox}/ports/{port}/local" },
  executionEvents: { tag: "notebooks", method: "get", path: "/sandboxes/{sandbox}/executions/{execution}/events" },
  screenshot: { tag: "desktops", method: "get", path: "/sandboxes/{sandbox}/desktop/screenshot" },
  desktop: { tag: "desktops", method: "websocket", path: "/sandboxes/{sandbox}/desktop/screen" },
  proxy: { tag: "ports", method: "any", path: "/sandboxes/{sandbox}/ports/{port}/http/{rest}" },
} as const satisfies Record<string, Stream>;

/** First byte of a binary WebSocket frame. */
export const CHANNEL = { stdin: 0, stdout: 1, stderr: 2 } as const;
/** Header with the JSON of a file's entry, in ASCII. */
export const ENTRY_HEADER = "viv-entry";
/** WebSocket subprotocol, and the prefix under which a browser passes the token beside it. */
export const SOCKET_PROTOCOL = "viv";
export const SOCKET_TOKEN_PREFIX = "viv.bearer.";
/** A browser's session: the header with its key, the prefix of the same among a WebSocket's subprotocols, and where it logs in. */
export const SESSION_KEY_HEADER = "viv-key";
export const SOCKET_KEY_PREFIX = "viv.key.";
export const LOGIN_PATH = "/dashboard/login";
/** Where the origin of a preview lets browsers in; no program inside is asked for it. */
export const ENTER_PATH = "/.viv/enter";
/** Calls of webhooks: the first part of their paths, and the header with the signature. They need no token. */
export const HOOK_PATH = "/hooks/";
export const HOOK_HEADER = "viv-signature";
/** First parts of the paths of the dashboard's pages; none is one of the API's. */
export const PAGES = [
  "work",
  "run",
  "experiment",
  "review",
  "question",
  "sandbox",
  "machine",
  "automation",
  "firing",
  "report",
  "vnc.html",
  "lab",
] as const;
