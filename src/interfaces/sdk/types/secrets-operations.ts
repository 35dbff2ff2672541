// Made from the contracts by scripts/sdk-types.ts.
import type { ImportedLogin, Secret } from "./secrets.ts";

/** Input of: Keep a secret, or replace it at once. */
export interface SetSecretInput {
  /** Name of the secret. */
  secret: string;
  /** The value; no answer ever holds it. */
  value: string;
  /** Hosts it is sent to. */
  hosts: string[];
  /** Only in requests with these methods; any if empty. */
  methods?: ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE")[] | undefined;
  /** Only below this path; any if null. */
  path?: string | null | undefined;
  /** Header that carries it, with {} in its place; the usual one of the API if null. */
  header?: string | null | undefined;
  /** What it is: a key or password, or the long-lived token of a subscription, which is sent as Anthropic takes it. */
  kind?: "key" | "subscription" | undefined;
  /** As they are if left out; none of a new secret. */
  projects?: string[] | null | undefined;
}

/** Answer of: Secrets, without their values. */
export interface ListSecretsOutput {
  secrets: Secret[];
}

/** Input of: Keep the logins of package managers' and git's settings files, each for its host. */
export interface ImportSecretsInput {
  /** The files: .npmrc, .netrc, pip.conf, cargo's credentials.toml with its config.toml, .git-credentials. */
  files: ({
    /** Where it lies; its name says what it holds. */
    path: string;
    /** What it holds; no answer ever has the values in it. */
    text: string;
  })[];
  /** Of those that are new; none if left out. */
  projects?: string[] | null | undefined;
  /** Only tells what would be kept. */
  dryRun?: boolean | undefined;
}

/** Answer of: Keep the logins of package managers' and git's settings files, each for its host. */
export interface ImportSecretsOutput {
  logins: ImportedLogin[];
}

/** Input of: Forget a secret at once. */
export interface RemoveSecretInput {
  /** Name of the secret. */
  secret: string;
}
