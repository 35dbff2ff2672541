// Made from the contracts by scripts/sdk-types.ts.

/** Input of: What a sandbox reaches. */
export interface InspectNetworkInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Change what a sandbox reaches; connections that are no longer allowed are closed. */
export interface ChangeNetworkInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** off: no network. allow-list: the hosts named. public: every public address, on the ports named. */
  mode?: "off" | "allow-list" | "public" | undefined;
  /** More hosts that are reached. */
  allow?: (string | {
    /** A host: `example.com`, `*.example.com` for all below it, or an address. */
    host: string;
    /** Ports of this host; those of the network if left out. */
    ports?: number[] | undefined;
    /** Any protocol, such as SSH, instead of TLS and HTTP alone. */
    tcp?: boolean | undefined;
  })[] | undefined;
  /** More hosts that are never reached; taken off the allowed ones. */
  deny?: string[] | undefined;
  /** Open ports, instead of the present ones. */
  ports?: number[] | undefined;
  /** Requests that can change something outside (plain HTTP that is not GET, HEAD or OPTIONS): kept in the ledger, or held for a person, too. */
  effects?: "record" | "hold" | undefined;
}

/** Input of: Package registries that settings of the machine or the project name, and that a new sandbox would not reach. */
export interface ClosedRegistriesInput {
  /** Absolute path of a folder in the project, or of the project. */
  project: string;
  /** Home folder of the caller; that of the server's user if left out. */
  home?: string | undefined;
  /** Mode of the new sandbox; as configured if left out. */
  network?: "off" | "allow-list" | "public" | undefined;
}

/** Answer of: Package registries that settings of the machine or the project name, and that a new sandbox would not reach. */
export interface ClosedRegistriesOutput {
  /** The first few of them. */
  registries: ({
    /** Its name or address. */
    host: string;
    /** Its port. */
    port: number;
    /** The file that names it. */
    file: string;
    /** What closes it. */
    why: "private address" | "port";
  })[];
}

/** Input of: Open a host with a private address for a project's sandboxes, as a person; it counts at once. */
export interface AllowPrivateInput {
  /** Absolute path of a folder in the project, or of the project. */
  project: string;
  /** A host: `example.com`, `*.example.com` for all below it, or an address. */
  host: string;
  /** Its port. */
  port: number;
  /** The approver's token, which the command line reads on a terminal alone. */
  approver: string;
}

/** Answer of: Open a host with a private address for a project's sandboxes, as a person; it counts at once. */
export interface AllowPrivateOutput {
  /** The project's folder. */
  project: string;
  /** What its sandboxes reach so. */
  private: ({
    /** A host: `example.com`, `*.example.com` for all below it, or an address. */
    host: string;
    /** Its open ports. */
    ports: number[];
    /** Any protocol instead of TLS and HTTP alone. */
    tcp: boolean;
  })[];
}
