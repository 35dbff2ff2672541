// Made from the contracts by scripts/sdk-types.ts.

/** What a sandbox reaches, and what it used of it. */
export interface NetworkReport {
  /** Id of the sandbox. */
  sandbox: string;
  /** Its name. */
  name: string;
  /** What a sandbox reaches. */
  rules: {
    /** off: no network. allow-list: the hosts named. public: every public address, on the ports named. */
    mode: "off" | "allow-list" | "public";
    /** Hosts that are reached. */
    allow: ({
      /** A host: `example.com`, `*.example.com` for all below it, or an address. */
      host: string;
      /** Ports of this host; those of the network if left out. */
      ports?: number[] | undefined;
      /** Any protocol, such as SSH, instead of TLS and HTTP alone. */
      tcp: boolean;
    })[];
    /** Open ports. */
    ports: number[];
    /** Hosts that are never reached. */
    production: string[];
    /** Hosts with private addresses that a person opened for the project. */
    private?: ({
      /** A host: `example.com`, `*.example.com` for all below it, or an address. */
      host: string;
      /** Its open ports. */
      ports: number[];
      /** Any protocol instead of TLS and HTTP alone. */
      tcp: boolean;
    })[] | undefined;
    /** Requests that can change something outside (plain HTTP that is not GET, HEAD or OPTIONS): kept in the ledger, or held for a person, too. */
    effects?: "record" | "hold" | undefined;
    /** False: commands get no variables that name the proxy. */
    variables?: boolean | undefined;
  };
  /** Connections open now. */
  connections: number;
  /** Bytes sent since the server took it over. */
  sentBytes: number;
  /** Bytes received since then. */
  receivedBytes: number;
  /** Requests allowed since then. */
  allowed: number;
  /** Requests denied since then. */
  denied: number;
}
