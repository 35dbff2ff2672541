/** Secrets that requests get outside the sandbox. Values go in and never come out. */
import { z } from "zod";
import { contract, Done, ProjectPath } from "./contract.ts";
import { canonicalHost, HostPattern } from "./network.ts";
import { portNumber } from "./numbers.ts";
import { ROUTES } from "./routes.ts";

const SecretName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "a name is 1 to 64 letters, digits, and inner . _ -")
  .describe("Name of the secret.");

/** With a port where it is not the usual one of TLS, 443, or of plain HTTP to this machine, 80. */
const SecretHost = z
  .string()
  .max(262)
  .refine((text) => {
    const { host, port } = boundHost(text);
    return HostPattern.safeParse(host).success && (port === undefined || portNumber(port) !== undefined);
  }, "a host is a name in lower case, *.name for all below it, or an address, with :PORT if it is not the usual one")
  .overwrite(canonicalBound)
  .describe("A host: `example.com`, `example.com:8443`, `*.example.com` for all below it, or an address.");

function canonicalBound(text: string): string {
  const { host, port } = boundHost(text);
  if (!host.includes(":")) return text;
  return port === undefined ? canonicalHost(host) : `[${canonicalHost(host)}]:${port}`;
}

/** `host`, `host:port` or `[address]:port`. */
export function boundHost(text: string): { readonly host: string; readonly port: string | undefined } {
  const [, address, name, port] = /^(?:\[([^\]]*)\]|([^:[]*))(?::([^:]*))?$/.exec(text) ?? [];
  return { host: address ?? name ?? text, port };
}

/** Where it may go; everything else gets the placeholder as it stands. */
export const SecretBinding = z.strictObject({
  hosts: z.array(SecretHost).min(1).max(64).describe("Hosts it is sent to."),
  methods: z
    .array(z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]))
    .max(6)
    .default([])
    .describe("Only in requests with these methods; any if empty."),
  path: z.string().startsWith("/").max(1024).nullable().default(null).describe("Only below this path; any if null."),
  header: z
    .string()
    .max(256)
    .regex(/^[A-Za-z0-9-]+: [^{}\r\n]*\{\}[^{}\r\n]*$/, "a header is `Name: value`, with {} where the secret stands")
    .nullable()
    .default(null)
    .describe("Header that carries it, with {} in its place; the usual one of the API if null."),
});
export type SecretBinding = z.infer<typeof SecretBinding>;

export const SecretKind = z
  .enum(["key", "subscription"])
  .describe("What it is: a key or password, or the long-lived token of a subscription, which is sent as Anthropic takes it.");
export type SecretKind = z.infer<typeof SecretKind>;

const SecretProjects = z
  .array(ProjectPath)
  .max(256)
  .nullable()
  .describe("Projects whose sandboxes use it, all if null. Any other asks a person at its first use.");

export const Secret = z
  .object({
    name: SecretName,
    ...SecretBinding.shape,
    kind: SecretKind,
    projects: SecretProjects,
    placeholder: z.string().describe("What stands for it inside: worthless anywhere else."),
    createdAt: z.string().describe("ISO time."),
    changedAt: z.string().describe("ISO time of the last change of its value or binding."),
  })
  .describe("A secret, without its value.")
  .meta({ id: "Secret" });
export type Secret = z.infer<typeof Secret>;

// A header has to carry the value.
export const SecretValue = z
  .string()
  .min(1)
  .max(16_384)
  .regex(/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/, "the value is empty, has line breaks, or characters that no header carries")
  .describe("The value; no answer ever holds it.");

export const ImportedLogin = z
  .object({
    file: z.string().describe("Where it stands."),
    what: z.string().describe("What it is, without its value."),
    secret: z.string().nullable().describe("Name of the secret; null if it can't be kept."),
    host: z.string().nullable().describe("The host it is bound to."),
    state: z.enum(["new", "replaced", "unchanged", "left out"]).describe("What became of it, or would."),
    reason: z.string().nullable().describe("Why it is left out."),
  })
  .describe("A login that was found in a file.")
  .meta({ id: "ImportedLogin" });
export type ImportedLogin = z.infer<typeof ImportedLogin>;

export const SECRET_CONTRACTS = {
  setSecret: contract(
    ROUTES.setSecret,
    "Keep a secret, or replace it at once",
    z.strictObject({
      secret: SecretName,
      value: SecretValue,
      ...SecretBinding.shape,
      kind: SecretKind.default("key"),
      projects: SecretProjects.optional().describe("As they are if left out; none of a new secret."),
    }),
    Secret,
  ),
  importSecrets: contract(
    ROUTES.importSecrets,
    "Keep the logins of package managers' and git's settings files, each for its host",
    z.strictObject({
      files: z
        .array(
          z.strictObject({
            path: z.string().startsWith("/").max(4096).describe("Where it lies; its name says what it holds."),
            text: z.string().max(65_536).describe("What it holds; no answer ever has the values in it."),
          }),
        )
        .max(32)
        .describe("The files: .npmrc, .netrc, pip.conf, cargo's credentials.toml with its config.toml, .git-credentials."),
      projects: SecretProjects.optional().describe("Of those that are new; none if left out."),
      dryRun: z.boolean().default(false).describe("Only tells what would be kept."),
    }),
    z.object({ logins: z.array(ImportedLogin) }),
  ),
  listSecrets: contract(ROUTES.listSecrets, "Secrets, without their values", z.strictObject({}), z.object({ secrets: z.array(Secret) })),
  removeSecret: contract(ROUTES.removeSecret, "Forget a secret at once", z.strictObject({ secret: SecretName }), Done),
} as const;
