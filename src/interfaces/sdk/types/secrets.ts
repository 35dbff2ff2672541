// Made from the contracts by scripts/sdk-types.ts.

/** A secret, without its value. */
export interface Secret {
  /** Name of the secret. */
  name: string;
  /** Hosts it is sent to. */
  hosts: string[];
  /** Only in requests with these methods; any if empty. */
  methods: ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** Only below this path; any if null. */
  path: string | null;
  /** Header that carries it, with {} in its place; the usual one of the API if null. */
  header: string | null;
  /** What it is: a key or password, or the long-lived token of a subscription, which is sent as Anthropic takes it. */
  kind: "key" | "subscription";
  /** Projects whose sandboxes use it, all if null. Any other asks a person at its first use. */
  projects: string[] | null;
  /** What stands for it inside: worthless anywhere else. */
  placeholder: string;
  /** ISO time. */
  createdAt: string;
  /** ISO time of the last change of its value or binding. */
  changedAt: string;
}

/** A login that was found in a file. */
export interface ImportedLogin {
  /** Where it stands. */
  file: string;
  /** What it is, without its value. */
  what: string;
  /** Name of the secret; null if it can't be kept. */
  secret: string | null;
  /** The host it is bound to. */
  host: string | null;
  /** What became of it, or would. */
  state: "new" | "replaced" | "unchanged" | "left out";
  /** Why it is left out. */
  reason: string | null;
}
