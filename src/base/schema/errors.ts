/** Every way Vivarium can fail, what it means over HTTP and at the command line, and what to do now. */

interface ErrorKind {
  /** HTTP status. */
  readonly status: number;
  /** Exit code of the CLI. */
  readonly exit: number;
  /** What the user can do now, one sentence. */
  readonly remedy: string;
}

export const ERRORS = {
  invalid_input: { status: 400, exit: 2, remedy: "Correct the named field and call again." },
  usage: { status: 400, exit: 2, remedy: "See `viv help` or `viv <command> --help`." },
  unauthorized: { status: 401, exit: 4, remedy: "Send the token that `viv up --listen` printed, as `Authorization: Bearer`." },
  forbidden_origin: { status: 403, exit: 4, remedy: "Call from this machine, with the server's own address as Host and Origin." },
  denied: { status: 403, exit: 4, remedy: "The sandbox's own file permissions refuse this; `--user root` may, where viv is run by root." },
  not_found: { status: 404, exit: 2, remedy: "Look at `viv ls` for the names that exist." },
  project_not_found: { status: 404, exit: 2, remedy: "Change into a project folder or pass `--project PATH`." },
  ref_not_found: { status: 404, exit: 2, remedy: "Look at what the repository has with `git ls-remote`." },
  file_not_found: { status: 404, exit: 2, remedy: "Look at `viv files ls SANDBOX PATH`." },
  command_not_found: { status: 404, exit: 127, remedy: "Check the spelling, or install the program inside the sandbox." },
  command_not_runnable: { status: 400, exit: 126, remedy: "Check that the file is executable and made for this machine." },
  agent_missing: { status: 404, exit: 2, remedy: "Look at `viv agents` for those that are there; `viv agents install` fetches one." },
  agent_install: { status: 502, exit: 1, remedy: "See what npm says; `npm config get registry` shows where it looks." },
  agent_login: { status: 409, exit: 4, remedy: "Run `viv agents login` for the agent, then try again." },
  model_refused: { status: 400, exit: 2, remedy: "Name another model, or leave it out for the agent's own choice." },
  name_taken: { status: 409, exit: 3, remedy: "Choose another name, or remove the sandbox that has it." },
  exists: { status: 409, exit: 3, remedy: "Choose another path, or allow it to be replaced." },
  key_reused: { status: 409, exit: 3, remedy: "Choose another idempotency key for another request." },
  merge_conflict: { status: 409, exit: 3, remedy: "Look at the conflicts; a sandbox on the merged state is a place to resolve them." },
  no_project: {
    status: 409,
    exit: 3,
    remedy: "Push a branch from inside, or take the change out with `viv diff SANDBOX --patch` or `viv cp`.",
  },
  push_refused: { status: 409, exit: 3, remedy: "Look at what the remote has with `git fetch`; nothing is ever forced." },
  illegal_transition: {
    status: 409,
    exit: 3,
    remedy: "Look at the state with `viv inspect`; a finished sandbox can be started again or forked.",
  },
  not_running: {
    status: 409,
    exit: 3,
    remedy: "`viv resume` it if it is paused; if it has ended, `viv start` goes on from the files it left.",
  },
  busy: { status: 409, exit: 3, remedy: "Wait for the operation that is under way, then try again." },
  untrusted_config: { status: 409, exit: 4, remedy: "Read vivarium.json, then run `viv trust`." },
  config_invalid: { status: 400, exit: 2, remedy: "Correct the named line of the config file." },
  no_capacity: { status: 429, exit: 5, remedy: "Remove sandboxes with `viv rm` or `viv prune`, or raise the ceiling in the user config." },
  rate_limited: { status: 429, exit: 5, remedy: "Wait as long as Retry-After says, then try again." },
  coordination_cycle: { status: 409, exit: 3, remedy: "Answer what the sibling asked first; it waits for that." },
  disk_full: { status: 507, exit: 5, remedy: "Free space on the host, or move the state folder with VIV_HOME." },
  storage_stopped: {
    status: 503,
    exit: 5,
    remedy: "Wait: the server opens the storage again by itself. If it does not, the kernel's log says what is wrong with the disk.",
  },
  storage_damaged: {
    status: 500,
    exit: 5,
    remedy: "Take out what can still be read, go on from an earlier snapshot, and look at the disk.",
  },
  snapshot_damaged: { status: 409, exit: 3, remedy: "Use another one of `viv snapshots`, or fork the sandbox as it is now." },
  too_large: { status: 413, exit: 5, remedy: "Take out less: remove large files inside that are not needed, or copy them with `viv cp`." },
  limit_unsupported: { status: 400, exit: 2, remedy: "Leave the limit out, or see `viv doctor` for what this machine needs to hold it." },
  clone_failed: { status: 502, exit: 3, remedy: "Check the address, and try `git ls-remote` with it." },
  login_needed: {
    status: 403,
    exit: 4,
    remedy: "Keep a token for the host outside: `viv secret set NAME --host HOST --all-projects`.",
  },
  forge_failed: { status: 502, exit: 3, remedy: "Check the forge's address and token in the user config; the branch is kept." },
  port_unreachable: { status: 502, exit: 2, remedy: "Look at what listens inside, and whether it speaks HTTP." },
  notebook_missing: { status: 501, exit: 2, remedy: "Install what is missing on the machine, then try again." },
  notebook_failed: { status: 502, exit: 2, remedy: "Look at `viv ps SANDBOX --all` and `viv logs` for what Jupyter said." },
  desktop_missing: { status: 501, exit: 2, remedy: "Install what is missing on the machine, then try again." },
  desktop_failed: {
    status: 502,
    exit: 2,
    remedy: "Look at `viv logs` of the sandbox, close the desktop with `viv desktop SANDBOX --close`, and start it again.",
  },
  desktop_taken: { status: 409, exit: 2, remedy: "Try again when the person has given it back; looking works meanwhile." },
  unsupported: { status: 501, exit: 2, remedy: "`viv doctor` says what this machine can do." },
  no_walls: { status: 501, exit: 2, remedy: "Run `viv doctor`; `--unwalled` works on a copy of the folder without isolation." },
  server_unreachable: { status: 503, exit: 125, remedy: "Start it with `viv up`; its log is named by `viv status`." },
  server_running: { status: 409, exit: 3, remedy: "Stop the other server with `viv down`, or use another VIV_HOME." },
  state_lost: {
    status: 503,
    exit: 125,
    remedy:
      "Run the command again: it starts a new server. Processes of the old sandboxes go on until they are ended by hand or the machine restarts.",
  },
  store_corrupt: {
    status: 500,
    exit: 125,
    remedy: "Run `viv doctor --repair`: it brings back the newest backup, if there is one; running sandboxes are left alone.",
  },
  store_newer: { status: 500, exit: 125, remedy: "Use the version of viv that wrote this state folder, or a newer one." },
  store_busy: { status: 503, exit: 125, remedy: "Try again; something else holds the database." },
  audit_unavailable: {
    status: 503,
    exit: 125,
    remedy: "Free space on the disk of the state folder; nothing is done that can't be recorded.",
  },
  secret_unreadable: {
    status: 500,
    exit: 125,
    remedy: "Set the secret again with `viv secret set`; its key file is not the one it was kept with.",
  },
  timeout: { status: 504, exit: 124, remedy: "Give it more time, or look at what it waits for." },
  cancelled: { status: 499, exit: 130, remedy: "Nothing to do: a caller cancelled it." },
  cell_incompatible: {
    status: 409,
    exit: 3,
    remedy: "`viv fork` goes on with its files in this version; the version that launched it can still work with it.",
  },
  sandbox_silent: {
    status: 504,
    exit: 125,
    remedy: "Try again; if it stays silent, `viv fork` goes on with its files and `viv rm` removes it.",
  },
  cell_failed: { status: 500, exit: 125, remedy: "Run `viv doctor`; if it finds nothing, report this with the message." },
  internal: { status: 500, exit: 125, remedy: "This is a defect: report it with the message and the server's log." },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

export interface ErrorBody {
  error: { code: ErrorCode; message: string; remedy: string };
}

/** The only error class. The message is one sentence about what happened; the code brings the remedy. */
export class VivError extends Error {
  readonly code: ErrorCode;
  readonly #remedy: string | undefined;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; remedy?: string } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    // As the SDK calls it, whose callers see this name in their stack traces.
    this.name = "VivariumError";
    this.code = code;
    this.#remedy = options.remedy;
  }

  get remedy(): string {
    return this.#remedy ?? ERRORS[this.code].remedy;
  }

  /** HTTP status of the code. */
  get status(): number {
    return ERRORS[this.code].status;
  }

  toBody(): ErrorBody {
    return { error: { code: this.code, message: this.message, remedy: this.remedy } };
  }

  static from(error: unknown): VivError {
    if (error instanceof VivError) return error;
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT")) {
      return new VivError("disk_full", `The disk is full: ${message}.`, { cause: error });
    }
    return new VivError("internal", message, { cause: error });
  }

  static fromBody(body: ErrorBody): VivError {
    return new VivError(body.error.code, body.error.message, { remedy: body.error.remedy });
  }
}

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text);
}
