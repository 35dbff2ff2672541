/** Where every operation is found. Apart from its schemas, so that a client starts without them. */

export interface Route {
  readonly method: "get" | "post" | "put" | "delete";
  /** Path with {name} for the fields of the input that stand in it; the others are query (get, delete) or JSON body. */
  readonly path: string;
}

export interface Stream {
  /** websocket is a GET with Upgrade; any is every method. */
  readonly method: "get" | "put" | "websocket" | "any";
  readonly path: string;
}

export const ROUTES = {
  createSandbox: { method: "post", path: "/sandboxes" },
  listSandboxes: { method: "get", path: "/sandboxes" },
  findSandbox: { method: "get", path: "/sandboxes/{sandbox}/summary" },
  inspectSandbox: { method: "get", path: "/sandboxes/{sandbox}" },
  removeSandbox: { method: "delete", path: "/sandboxes/{sandbox}" },
  stopSandbox: { method: "post", path: "/sandboxes/{sandbox}/stop" },
  startSandbox: { method: "post", path: "/sandboxes/{sandbox}/start" },
  pauseSandbox: { method: "post", path: "/sandboxes/{sandbox}/pause" },
  resumeSandbox: { method: "post", path: "/sandboxes/{sandbox}/resume" },
  extendSandbox: { method: "post", path: "/sandboxes/{sandbox}/extend" },
  limitSandbox: { method: "post", path: "/sandboxes/{sandbox}/limits" },
  forkSandbox: { method: "post", path: "/sandboxes/{sandbox}/fork" },
  diffSandbox: { method: "get", path: "/sandboxes/{sandbox}/diff" },
  diffSystem: { method: "get", path: "/sandboxes/{sandbox}/diff/system" },
  sandboxStatus: { method: "get", path: "/sandboxes/{sandbox}/status" },
  refreshSandbox: { method: "post", path: "/sandboxes/{sandbox}/refresh" },
  staleness: { method: "get", path: "/sandboxes/{sandbox}/staleness" },
  runCommand: { method: "post", path: "/sandboxes/{sandbox}/run" },
  listCommands: { method: "get", path: "/sandboxes/{sandbox}/commands" },
  inspectCommand: { method: "get", path: "/sandboxes/{sandbox}/commands/{command}" },
  killCommand: { method: "post", path: "/sandboxes/{sandbox}/commands/{command}/kill" },
  inspectNetwork: { method: "get", path: "/sandboxes/{sandbox}/network" },
  changeNetwork: { method: "post", path: "/sandboxes/{sandbox}/network" },
  createSnapshot: { method: "post", path: "/sandboxes/{sandbox}/snapshots" },
  listSnapshots: { method: "get", path: "/sandboxes/{sandbox}/snapshots" },
  removeSnapshot: { method: "delete", path: "/sandboxes/{sandbox}/snapshots/{snapshot}" },
  rollback: { method: "post", path: "/sandboxes/{sandbox}/rollback" },
  listFiles: { method: "get", path: "/sandboxes/{sandbox}/files/list" },
  statFile: { method: "get", path: "/sandboxes/{sandbox}/files/stat" },
  moveFile: { method: "post", path: "/sandboxes/{sandbox}/files/move" },
  removeFile: { method: "post", path: "/sandboxes/{sandbox}/files/remove" },
  makeFolder: { method: "post", path: "/sandboxes/{sandbox}/files/mkdir" },
  startExperiment: { method: "post", path: "/experiments" },
  listExperiments: { method: "get", path: "/experiments" },
  inspectExperiment: { method: "get", path: "/experiments/{experiment}" },
  cancelExperiment: { method: "post", path: "/experiments/{experiment}/cancel" },
  retryExperiment: { method: "post", path: "/experiments/{experiment}/retry" },
  pickWinner: { method: "post", path: "/experiments/{experiment}/pick" },
  removeExperiment: { method: "delete", path: "/experiments/{experiment}" },
  planPromotion: { method: "post", path: "/promotions/plan" },
  promote: { method: "post", path: "/promotions" },
  listPromotions: { method: "get", path: "/promotions" },
  inspectPromotion: { method: "get", path: "/promotions/{promotion}" },
  continuePromotion: { method: "post", path: "/promotions/{promotion}/continue" },
  discardPromotion: { method: "post", path: "/promotions/{promotion}/discard" },
  undoPromotion: { method: "post", path: "/promotions/undo" },
  closedRegistries: { method: "get", path: "/network/closed-registries" },
  allowPrivate: { method: "post", path: "/network/private" },
  listApprovals: { method: "get", path: "/approvals" },
  inspectApproval: { method: "get", path: "/approvals/{approval}" },
  answerApproval: { method: "post", path: "/approvals/{approval}/answer" },
  explainPolicy: { method: "post", path: "/policy/explain" },
  testPolicy: { method: "get", path: "/policy/test" },
  triageAction: { method: "post", path: "/policy/triage" },
  agentInstructions: { method: "get", path: "/policy/agents" },
  importPolicy: { method: "post", path: "/policy/import" },
  listRules: { method: "get", path: "/policy/rules" },
  forgetRule: { method: "delete", path: "/policy/rules/{rule}" },
  decideAction: { method: "post", path: "/sandboxes/{sandbox}/actions" },
  inspectPolicy: { method: "get", path: "/sandboxes/{sandbox}/policy" },
  setPolicy: { method: "post", path: "/sandboxes/{sandbox}/policy" },
  setSecret: { method: "post", path: "/secrets/{secret}" },
  listSecrets: { method: "get", path: "/secrets" },
  importSecrets: { method: "post", path: "/secret-imports" },
  removeSecret: { method: "delete", path: "/secrets/{secret}" },
  listEffects: { method: "get", path: "/effects" },
  usage: { method: "get", path: "/usage" },
  listAudit: { method: "get", path: "/audit" },
  verifyAudit: { method: "get", path: "/audit/verify" },
  reportDecision: { method: "post", path: "/sandboxes/{sandbox}/decisions" },
  listDecisions: { method: "get", path: "/sandboxes/{sandbox}/decisions" },
  listEvents: { method: "get", path: "/events/list" },
  status: { method: "get", path: "/status" },
  doctor: { method: "get", path: "/doctor" },
  trust: { method: "post", path: "/trust" },
  prune: { method: "post", path: "/prune" },
  shutdown: { method: "post", path: "/shutdown" },
} as const satisfies Record<string, Route>;

/** Routes that carry bytes, events or a conversation instead of one JSON value. */
export const STREAMS = {
  events: { method: "get", path: "/events" },
  patch: { method: "get", path: "/sandboxes/{sandbox}/diff/patch" },
  readFile: { method: "get", path: "/sandboxes/{sandbox}/files/content" },
  writeFile: { method: "put", path: "/sandboxes/{sandbox}/files/content" },
  packFiles: { method: "get", path: "/sandboxes/{sandbox}/files/archive" },
  unpackFiles: { method: "put", path: "/sandboxes/{sandbox}/files/archive" },
  watchFiles: { method: "get", path: "/sandboxes/{sandbox}/files/watch" },
  exec: { method: "websocket", path: "/sandboxes/{sandbox}/exec" },
  attach: { method: "websocket", path: "/sandboxes/{sandbox}/commands/{command}/attach" },
  tunnel: { method: "websocket", path: "/sandboxes/{sandbox}/ports/{port}/tunnel" },
  proxy: { method: "any", path: "/sandboxes/{sandbox}/ports/{port}/http/{rest}" },
} as const satisfies Record<string, Stream>;

/** First byte of a binary WebSocket frame. */
export const CHANNEL = { stdin: 0, stdout: 1, stderr: 2 } as const;
/** Header with the JSON of a file's entry, in ASCII. */
export const ENTRY_HEADER = "viv-entry";
/** WebSocket subprotocol, and the prefix under which a browser passes the token beside it. */
export const SOCKET_PROTOCOL = "viv";
export const SOCKET_TOKEN_PREFIX = "viv.bearer.";
