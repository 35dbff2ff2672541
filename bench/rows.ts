/** The rows of the benchmark: what each figure is, and what it must be. */

export interface RowDeclaration {
  readonly what: string;
  /** "x" is a ratio within one run. */
  readonly unit: "x" | "MiB" | "kB" | "ms" | "s" | "";
  /** The figure must not be over this; null for a figure that only informs. */
  readonly limit: number | null;
  /** The figure must not be below this. */
  readonly least?: number;
}

const DECLARED = {
  create_vs_bwrap: { what: "create a sandbox and run /bin/true in it, against bwrap", unit: "x", limit: 1 },
  create_vs_runc: { what: "the same against runc on an overlay of /", unit: "x", limit: 0.5 },
  exec_vs_spawn: { what: "run /bin/true in a sandbox, against spawn", unit: "x", limit: 1.2 },
  cli_start: { what: "viv version, against node -e 0", unit: "x", limit: 1.1 },
  exec_cli_vs_spawn: { what: "viv exec of /bin/true as typed, against nsenter into the same sandbox", unit: "x", limit: null },
  out_mb_s: { what: "a command that prints 1 GiB through viv exec into a pipe, megabytes per second", unit: "", limit: null },
  cp_ratio: { what: "viv cp of 1 GiB in and out, the worse of the two, against cp", unit: "x", limit: null },
  clone_growth: { what: "create in 50,000 files, against 50 files", unit: "x", limit: 1.5 },
  clone_after_change: { what: "create after 10 of 50,000 files changed, against cp -a", unit: "x", limit: 0.005 },
  snapshot_growth: { what: "snapshot of 20,000 files and 500 MB changed, against 10 files", unit: "x", limit: 3 },
  snapshot_frozen_ms: { what: "time the large sandbox stood still", unit: "ms", limit: null },
  rollback_growth: { what: "rollback of the same, against 10 files", unit: "x", limit: 3 },
  fork_growth: { what: "fork of the same, against 10 files", unit: "x", limit: 3 },
  snapshot_vs_bwrap: { what: "snapshot of a sandbox with 10 changed files and a process, against bwrap", unit: "x", limit: 1 },
  rollback_vs_bwrap: { what: "rollback of the same", unit: "x", limit: 1.5 },
  fork_vs_bwrap: { what: "fork of the same", unit: "x", limit: 1.5 },
  io_ratio: { what: "git status and tsc --noEmit inside, against outside", unit: "x", limit: 1.15 },
  idle_mib: { what: "memory of one idle sandbox", unit: "MiB", limit: 2 },
  burst_100: { what: "100 creates at once, sandboxes per second; none may fail", unit: "", limit: null, least: 200 },
  server_mib: { what: "memory of the server with 100 idle sandboxes", unit: "MiB", limit: 100 },
  many_1000: { what: "create with 1,000 idle sandboxes, against with none; more.exec: the same for a command", unit: "x", limit: 1.2 },
  try_overhead: { what: "viv try of 3 attempts of sleep 1 with a check, over the plain command", unit: "s", limit: 0.2 },
  try_scaling: { what: "8 attempts of sleep 2, against 1", unit: "x", limit: 1.08 },
  diff_vs_git: { what: "diff of 5,000 of 50,000 files, against git diff --no-index", unit: "x", limit: 0.5 },
  promote_vs_rsync: { what: "promote 5,000 files, against rsync -a", unit: "x", limit: 1.5 },
  proxy_ratio: { what: "throughput of 100 MiB through cell and proxy, against direct", unit: "x", limit: null, least: 0.7 },
  proxy_latency: { what: "added to a small request by cell and proxy", unit: "ms", limit: null },
  port_ratio: { what: "throughput of 100 MiB from a port inside through viv port, against direct", unit: "x", limit: null },
  policy_per_s: { what: "decisions per second for compound commands, at four levels", unit: "", limit: null, least: 5000 },
  audit_per_s: {
    what: "durable records per second of agents that report at once, none lost by kill -9",
    unit: "",
    limit: null,
    least: 10_000,
  },
  context_ms: { what: "a view of 20,000 tokens and a search of a conversation of a million tokens", unit: "ms", limit: null },
  agent_overhead: {
    what: "Claude Code with two tool calls and policy hooks in a sandbox, against the same outside without hooks",
    unit: "x",
    limit: 1.15,
  },
  task_start_ms: {
    what: "viv task typed until the agent's first model request, less the same for the agent alone",
    unit: "ms",
    limit: 250,
  },
  inject_ms: { what: "say until Claude Code has it, while a tool loop runs", unit: "ms", limit: 500 },
  events_per_s: {
    what: "events of an agent accepted, stored and streamed to 10 listeners, per second",
    unit: "",
    limit: null,
    least: 5000,
  },
  sdk_start_ms: { what: "import of the SDK and its first call, with a server that runs", unit: "ms", limit: null },
  job_ms: { what: "POST /schedule of echo until its status is succeeded, against create_vs_bwrap's create", unit: "x", limit: 3 },
  jobs_1000: { what: "failures among 1,000 jobs from 10 clients", unit: "", limit: 0 },
  trigger_ms: { what: "a file is saved until the sandbox of its automation's task runs, against create", unit: "x", limit: 5 },
  idle_cost: { what: "processor time of 50 automations of all kinds that wait, per hour", unit: "s", limit: 10 },
  mcp_execute: {
    what: "execute_task of a chat client with Claude Code and two tool calls, against the same agent alone",
    unit: "x",
    limit: 1.2,
  },
  mcp_call_ms: { what: "a tool call of a chat client that does nothing, over stdio", unit: "ms", limit: 10 },
  page_kb: { what: "first page of the dashboard, gzipped, before terminal and diff are loaded", unit: "kB", limit: 200 },
  page_ms: {
    what: "warm load of the first page in Chromium until a question and what runs are shown; more.empty_ms: of a server without work",
    unit: "ms",
    limit: null,
  },
  event_lag_ms: { what: "event in the server until it is drawn in the page, median, 100 events a second", unit: "ms", limit: 100 },
  execute_ms: { what: "code in a warm context of a notebook, there and back", unit: "ms", limit: 50 },
  screenshot_ms: { what: "screenshot of a desktop of 1280 by 800 by API", unit: "ms", limit: 100 },
  desktop_s: { what: "start of a desktop until the first picture", unit: "s", limit: 2 },
  leaks: { what: "things left after creating and destroying", unit: "", limit: 0 },
} as const satisfies Record<string, RowDeclaration>;

export type Key = keyof typeof DECLARED;
export const ROWS: Readonly<Record<Key, RowDeclaration>> = DECLARED;
export const KEYS = Object.keys(DECLARED) as readonly Key[];

export function isKey(text: string): text is Key {
  return Object.hasOwn(DECLARED, text);
}

/** All samples of one side, and what they come to. */
export interface Series {
  readonly unit: string;
  readonly count: number;
  readonly min: number;
  readonly median: number;
  readonly p95: number;
  readonly samples: readonly number[];
}

export interface Measured {
  readonly figure: number;
  readonly raw: Readonly<Record<string, Series>>;
  /** More figures that belong to the row, by name. */
  readonly more?: Readonly<Record<string, number>>;
}

/** Why there is no figure here, such as a peer that is not installed. */
export interface Absent {
  readonly reason: string;
}

/** The bench itself failed at this row. */
export interface Broken {
  readonly error: string;
}

export type Outcome = Measured | Absent | Broken;

export interface Settings {
  readonly quick: boolean;
  /** The keys asked for; a group leaves the others out. */
  readonly wanted: ReadonlySet<Key>;
  readonly progress: (text: string) => void;
}

/** Rows that are measured together on one server. */
export interface Group {
  readonly keys: readonly Key[];
  measure(settings: Settings): Promise<Partial<Record<Key, Measured | Absent>>>;
}
