/** Which way out a sandbox has: the modes, the rules for hosts, and the operations that show and change them. */
import { z } from "zod";
import { EFFECTS_MODES, NETWORK_MODES } from "./choices.ts";
import { Approver } from "./approval.ts";
import { contract, ProjectPath } from "./contract.ts";
import { SandboxRef } from "./ids.ts";
import { ROUTES } from "./routes.ts";

/** Loopback port inside on which the proxy answers. */
export const PROXY_PORT = 4098;
/** Name of the proxy's socket in the folder of a sandbox's sockets. */
export const PROXY_SOCKET = "egress.sock";
/** File beside it that lists the ports on which names are dialled without the proxy; the cell reads it. */
export const PORTS_FILE = "ports";
/** Where names are resolved inside: an address of the cell's own. */
export const NAME_SERVER = "198.18.0.1";
/** Ports of the web: what is open unless a config says otherwise. */
export const WEB_PORTS: readonly number[] = [80, 443];

export const NetworkMode = z
  .enum(NETWORK_MODES)
  .describe("off: no network. allow-list: the hosts named. public: every public address, on the ports named.");
export type NetworkMode = z.infer<typeof NetworkMode>;

const LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?";
const HOST = new RegExp(`^(\\*\\.)?${LABEL}(\\.${LABEL})*$|^[0-9a-f.]*(:[0-9a-f.]*){2,}$`);

/** The one spelling of an IPv6 address that the proxy uses, too; undefined if the text is none. */
function canonicalSix(host: string): string | undefined {
  return host.includes(":") ? URL.parse(`http://[${host}]/`)?.hostname.slice(1, -1) : undefined;
}

/** Hosts are compared as text, and an IPv6 address has many spellings. Rows of earlier versions may hold others than this one. */
export function canonicalHost(host: string): string {
  return canonicalSix(host) ?? host;
}

/** A name, `*.` and a name for everything below it, or an address. */
export const HostPattern = z
  .string()
  .max(253)
  .regex(HOST, "a host is a name in lower case, *.name for all below it, or an address")
  .refine((host) => !host.includes(":") || canonicalSix(host) !== undefined, "not an address")
  .overwrite(canonicalHost)
  .describe("A host: `example.com`, `*.example.com` for all below it, or an address.");

const Port = z.number().int().min(1).max(65_535);
const Ports = z.array(Port).min(1).max(64);

const HostRuleObject = z.strictObject({
  host: HostPattern,
  ports: Ports.optional().describe("Ports of this host; those of the network if left out."),
  tcp: z.boolean().default(false).describe("Any protocol, such as SSH, instead of TLS and HTTP alone."),
});
/** A host alone stands for the usual ports. */
const HostRuleInput = z
  .union([HostPattern, HostRuleObject])
  .transform((rule) => (typeof rule === "string" ? { host: rule, tcp: false } : rule));
export type HostRule = z.infer<typeof HostRuleObject>;

const PrivateHost = z
  .strictObject({
    host: HostPattern,
    ports: Ports.describe("Its open ports."),
    tcp: z.boolean().default(false).describe("Any protocol instead of TLS and HTTP alone."),
  })
  .describe("A host with a private address.");
export type PrivateHost = z.infer<typeof PrivateHost>;

const allow = z.array(HostRuleInput).max(1000).default([]).describe("Hosts that are reached, in both modes that are not off.");
const production = z.array(HostPattern).max(1000).default([]).describe("Hosts that are never reached, in no mode.");
const ports = Ports.optional().describe("Open ports; 80 and 443 if left out.");

export const EffectsMode = z
  .enum(EFFECTS_MODES)
  .describe(
    "Requests that can change something outside (plain HTTP that is not GET, HEAD or OPTIONS): kept in the ledger, or held for a person, too.",
  );
export type EffectsMode = z.infer<typeof EffectsMode>;

const variables = z
  .boolean()
  .optional()
  .describe("Whether commands get variables that name the proxy, and git settings for HTTPS; names work without them. On if left out.");

/** `network` of a project. */
export const ProjectNetwork = z
  .strictObject({
    mode: NetworkMode.optional(),
    allow,
    ports,
    production,
    effects: EffectsMode.optional(),
    variables,
    tightenOnly: z.boolean().optional().describe("It only narrows the user's own rules; always so until the config is trusted."),
  })
  .describe("What sandboxes of this project reach. What is wider than the user's own rules widens.");
export type ProjectNetwork = z.infer<typeof ProjectNetwork>;

/** `network` of the user's own config. */
export const UserNetwork = z
  .strictObject({
    mode: NetworkMode.optional().describe("Mode of sandboxes whose project names none; public if left out."),
    ceiling: NetworkMode.optional().describe("The widest mode of any sandbox on this machine; no project and no caller goes beyond it."),
    allow,
    ports,
    production,
    effects: EffectsMode.optional(),
    variables,
    private: z.array(PrivateHost).max(1000).default([]).describe("Hosts with private addresses that are reached; metadata services never."),
    resolvers: z
      .array(z.string().min(1))
      .max(8)
      .default([])
      .describe("DNS servers to ask, `address` or `address:port`, instead of the machine's."),
  })
  .describe("What sandboxes of this machine reach.");
export type UserNetwork = z.infer<typeof UserNetwork>;

/** What one sandbox reaches. */
export const NetworkRules = z
  .object({
    mode: NetworkMode,
    allow: z.array(HostRuleObject).describe("Hosts that are reached."),
    ports: z.array(Port).describe("Open ports."),
    production: z.array(HostPattern).describe("Hosts that are never reached."),
    private: z.array(PrivateHost).optional().describe("Hosts with private addresses that a person opened for the project."),
    effects: EffectsMode.optional(),
    variables: z.boolean().optional().describe("False: commands get no variables that name the proxy."),
  })
  .describe("What a sandbox reaches.");
export type NetworkRules = z.infer<typeof NetworkRules>;

/** What a person chose for one sandbox, beside its configs. */
export interface ChosenNetwork {
  readonly mode?: NetworkMode | undefined;
  readonly allow?: readonly HostRule[] | undefined;
  readonly ports?: readonly number[] | undefined;
}

export const NO_NETWORK: NetworkRules = { mode: "off", allow: [], ports: [...WEB_PORTS], production: [] };

const WIDTH: Readonly<Record<NetworkMode, number>> = { off: 0, "allow-list": 1, public: 2 };

export function narrower(one: NetworkMode, other: NetworkMode): NetworkMode {
  return WIDTH[one] <= WIDTH[other] ? one : other;
}

/** What a caller asks for one new sandbox, instead of what the configs say. */
interface AskedNetwork {
  readonly mode?: NetworkMode | undefined;
  readonly variables?: boolean | undefined;
}

/** What a sandbox reaches by the two configs together, within the user's ceiling. */
export function networkRules(project: ProjectNetwork, user: UserNetwork, asked: AskedNetwork = {}): NetworkRules {
  const ceiling = user.ceiling ?? "public";
  const usual = narrower(user.mode ?? "public", ceiling);
  const open = user.ports ?? [...WEB_PORTS];
  const own = project.tightenOnly === true ? narrowed(project, usual, open) : project;
  return {
    mode: narrower(asked.mode ?? own.mode ?? usual, ceiling),
    allow: [...user.allow, ...own.allow],
    ports: own.ports ?? open,
    production: [...new Set([...user.production, ...project.production])],
    // Requests are held as soon as one of the two configs says so.
    effects: project.effects === "hold" || user.effects === "hold" ? "hold" : "record",
    variables: asked.variables ?? project.variables ?? user.variables ?? true,
  };
}

/**
 * The rules of a project that may open nothing. Its list of hosts narrows the public web. Beside a list of the user's it would add
 * hosts, so there it is left out.
 */
function narrowed(project: ProjectNetwork, usual: NetworkMode, open: readonly number[]): Pick<ProjectNetwork, "mode" | "allow" | "ports"> {
  const within = (given: readonly number[] | undefined): number[] => open.filter((port) => given?.includes(port) ?? true);
  return {
    mode: narrower(project.mode ?? usual, usual),
    allow: usual === "public" ? project.allow.map(({ host, ports: given }) => ({ host, ports: within(given), tcp: false })) : [],
    ports: within(project.ports),
  };
}

export const NetworkReport = z
  .object({
    sandbox: z.string().describe("Id of the sandbox."),
    name: z.string().describe("Its name."),
    rules: NetworkRules,
    connections: z.number().int().describe("Connections open now."),
    sentBytes: z.number().describe("Bytes sent since the server took it over."),
    receivedBytes: z.number().describe("Bytes received since then."),
    allowed: z.number().int().describe("Requests allowed since then."),
    denied: z.number().int().describe("Requests denied since then."),
  })
  .describe("What a sandbox reaches, and what it used of it.")
  .meta({ id: "NetworkReport" });
export type NetworkReport = z.infer<typeof NetworkReport>;

const ClosedRegistry = z
  .object({
    host: z.string().describe("Its name or address."),
    port: Port.describe("Its port."),
    file: z.string().describe("The file that names it."),
    why: z.enum(["private address", "port"]).describe("What closes it."),
  })
  .describe("A package registry that sandboxes don't reach until a person opens it.");
export type ClosedRegistry = z.infer<typeof ClosedRegistry>;

const ofSandbox = z.strictObject({ sandbox: SandboxRef });

export const NETWORK_CONTRACTS = {
  allowPrivate: contract(
    ROUTES.allowPrivate,
    "Open a host with a private address for a project's sandboxes, as a person; it counts at once",
    z.strictObject({
      project: ProjectPath,
      host: HostPattern.refine((host) => !host.startsWith("*."), "one host, without *"),
      port: Port.describe("Its port."),
      approver: Approver,
    }),
    z.object({
      project: z.string().describe("The project's folder."),
      private: z.array(PrivateHost).describe("What its sandboxes reach so."),
    }),
  ),
  closedRegistries: contract(
    ROUTES.closedRegistries,
    "Package registries that settings of the machine or the project name, and that a new sandbox would not reach",
    z.strictObject({
      project: ProjectPath,
      home: z.string().startsWith("/").max(4096).optional().describe("Home folder of the caller; that of the server's user if left out."),
      network: NetworkMode.optional().describe("Mode of the new sandbox; as configured if left out."),
    }),
    z.object({ registries: z.array(ClosedRegistry).describe("The first few of them.") }),
  ),
  inspectNetwork: contract(ROUTES.inspectNetwork, "What a sandbox reaches", ofSandbox, NetworkReport),
  changeNetwork: contract(
    ROUTES.changeNetwork,
    "Change what a sandbox reaches; connections that are no longer allowed are closed",
    ofSandbox.extend({
      mode: NetworkMode.optional(),
      allow: z.array(HostRuleInput).max(1000).optional().describe("More hosts that are reached."),
      deny: z.array(HostPattern).max(1000).optional().describe("More hosts that are never reached; taken off the allowed ones."),
      ports: Ports.optional().describe("Open ports, instead of the present ones."),
      effects: EffectsMode.optional(),
    }),
    NetworkReport,
  ),
};
