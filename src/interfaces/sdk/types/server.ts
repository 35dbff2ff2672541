// Made from the contracts by scripts/sdk-types.ts.

/** What was used of the machine at one time. */
export interface MachineSample {
  /** ISO time. */
  at: string;
  /** Memory in use. */
  memoryBytes: number;
  /** Disk in use under the state folder. */
  diskBytes: number;
  /** Processes that ran or waited to, on average of a minute. */
  load: number;
  /** Sandboxes that ran. */
  sandboxes: number;
}

/** The server and its machine. */
export interface ServerStatus {
  /** Version of viv. */
  version: string;
  /** Process id of the server. */
  pid: number;
  /** ISO time. */
  startedAt: string;
  /** State folder. */
  home: string;
  /** Log file of the server. */
  log: string;
  /** Address it listens on besides its socket. */
  listen: string | null;
  /** What that opens; null where it has its socket alone. */
  access: ServerAccess | null;
  /** Walls in use. */
  driver: "native" | "folder" | "none";
  /** root: whole machine with all users. user: one mapped user. none: no walls. */
  mode: "root" | "user" | "none";
  /** Where volumes live. */
  storage: "btrfs" | "plain" | "folder";
  /** How limits are held. */
  limitsHeld: "hard" | "watched";
  /** Sandboxes by state. */
  sandboxes: { [name: string]: number };
  /** Memory of the machine. */
  memory: {
    totalBytes: number;
    freeBytes: number;
  };
  /** How busy the machine is. */
  load: {
    /** Processors. */
    cpus: number;
    /** Processes that ran or waited to, on average. */
    lastMinute: number;
  };
  /** Disk under the state folder. */
  disk: {
    totalBytes: number;
    freeBytes: number;
  };
  /** Sequence number of the newest event. */
  newestEvent: number;
}

/** What this machine can do. */
export interface Doctor {
  /** The best wall to be had here. */
  wall: "native" | "folder";
  /** How the native driver runs here. */
  mode: "root" | "user" | "none";
  findings: Finding[];
}

/** What the server opens besides its socket. Callers need the token, or a browser that a link of `viv open` has logged in. */
export interface ServerAccess {
  /** Address and port it listens on. */
  address: string;
  /** Addresses of the dashboard and the API; requests that name any other are refused. */
  origins: string[];
  /** Which computers reach it, unless a firewall stops them. */
  from: "this machine" | "the network of this address" | "every network";
  /** certificate: the user's. self-signed: made by the server. proxy: another program does TLS in front of it. none: on this machine alone. */
  tls: "none" | "certificate" | "self-signed" | "proxy";
  /** Addresses of previews of ports, such as `https://*.preview.example.com`; null where there are none. */
  previews: string | null;
  /** SHA-256 of the certificate. */
  fingerprint: string | null;
}

/** One finding of the doctor. */
export interface Finding {
  /** What was looked at. */
  check: string;
  /** good: all there. reduced: works with a loss. missing: does not work. */
  verdict: "good" | "reduced" | "missing";
  /** What was found, one sentence. */
  detail: string;
  /** What would make it better. */
  remedy: string | null;
}
