/** Logins of settings files, kept as secrets: each for its own host, and only where programs log in. */
import { basename, dirname } from "node:path";
import { formatOf, readLogins, type NamedLogin } from "../../machine/capture/logins.ts";
import { isAddress } from "../network/host.ts";
import { VivError } from "../../base/schema/errors.ts";
import { HostPattern } from "../../base/schema/network.ts";
import { boundHost, SecretValue, type ImportedLogin, type Secret, type SecretBinding } from "../../base/schema/secret.ts";
import type { Secrets } from "./secrets.ts";

interface GivenFile {
  readonly path: string;
  readonly text: string;
}

interface ImportOptions {
  readonly dryRun: boolean;
  /** Projects of new secrets. */
  readonly projects?: Secret["projects"] | undefined;
}

export async function importLogins(secrets: Secrets, files: readonly GivenFile[], how: ImportOptions): Promise<ImportedLogin[]> {
  const result: ImportedLogin[] = [];
  for (const { path, text } of files) {
    const format = formatOf(path);
    if (format === undefined) {
      if (isCargoConfig(path)) continue;
      throw new VivError("invalid_input", `${path} is no file of logins that is known here.`, {
        remedy: "Name .npmrc, .netrc, pip.conf, .git-credentials or cargo's credentials.toml, or keep it with `viv secret set`.",
      });
    }
    const { logins, unusable } = readLogins(format, text, format === "cargo" ? besideOf(path, files) : []);
    for (const login of logins) result.push(await keep(secrets, path, login, how));
    for (const { what, reason } of unusable) result.push({ file: path, what, secret: null, host: null, state: "left out", reason });
  }
  return result;
}

async function keep(secrets: Secrets, file: string, login: NamedLogin, { dryRun, projects }: ImportOptions): Promise<ImportedLogin> {
  const { name, host, what, value } = login;
  const reason = obstacle(login);
  if (reason !== undefined) return { file, what, secret: null, host: null, state: "left out", reason };
  const binding = kept(secrets.find(name), host) ?? { hosts: [host], methods: [], path: null, header: "Authorization: {}" };
  const found = { file, what, secret: name, host: binding.hosts.join(", "), reason: null };
  if (secrets.has(name, value, binding)) return { ...found, state: "unchanged" };
  const state = secrets.find(name) === undefined ? "new" : "replaced";
  if (!dryRun) await secrets.set(name, value, binding, state === "new" ? projects : undefined);
  return { ...found, state };
}

/** A person who has bound it to a port, methods or a path knows more than a file that names the host alone. */
function kept(before: Secret | undefined, host: string): SecretBinding | undefined {
  if (before === undefined || boundHost(host).port !== undefined) return undefined;
  const { hosts, methods, path, header } = before;
  return hosts.every((text) => boundHost(text).host === host) ? { hosts, methods, path, header } : undefined;
}

function obstacle({ host: place, value }: NamedLogin): string | undefined {
  const { host } = boundHost(place);
  if (host === "") return "the file does not say which host it is for";
  if (isAddress(host) || host === "localhost" || !HostPattern.safeParse(host).success || host.startsWith("*."))
    return "its host has no name that a certificate could be for";
  return SecretValue.safeParse(value).success ? undefined : "its value has characters that no header carries";
}

function isCargoConfig(path: string): boolean {
  return ["config.toml", "config"].includes(basename(path)) && basename(dirname(path)) === ".cargo";
}

/** Where cargo's registries are stands in its config. */
function besideOf(path: string, files: readonly GivenFile[]): string[] {
  return files.filter((file) => isCargoConfig(file.path) && dirname(file.path) === dirname(path)).map(({ text }) => text);
}
