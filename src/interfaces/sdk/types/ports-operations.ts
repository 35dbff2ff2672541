// Made from the contracts by scripts/sdk-types.ts.

/** Input of: Ports inside that have a listener. */
export interface ListPortsInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Answer of: Ports inside that have a listener. */
export interface ListPortsOutput {
  /** Without those of the sandbox's own parts, in order. */
  ports: number[];
}

/** Input of: Make a link that shows a port inside, at an origin of its own, to one browser; the server listens on loopback from then on. */
export interface OpenPreviewInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Port inside the sandbox. */
  port: number;
  /** Path and query at which the preview opens. */
  path?: string | undefined;
  /** For a frame of the dashboard instead of a tab: browsers keep cookies of both apart. */
  frame?: boolean | undefined;
  /** The key of a browser's session: the preview ends with that session. */
  key?: string | undefined;
}

/** A preview that can be opened. */
export interface OpenPreviewOutput {
  /** Lets one browser in, once; then it shows the preview. */
  url: string;
  /** Address of the preview for a browser that is in. */
  address: string;
  /** ISO time from which the link lets no browser in. */
  expiresAt: string;
}

/** Input of: Close the previews of a sandbox to all browsers; their open connections end, too. */
export interface ClosePreviewsInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}
