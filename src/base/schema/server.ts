import { z } from "zod";
import { DriverName } from "./sandbox.ts";

export const ServerAccess = z
  .object({
    address: z.string().describe("Address and port it listens on."),
    origins: z.array(z.string()).describe("Addresses of the dashboard and the API; requests that name any other are refused."),
    from: z
      .enum(["this machine", "the network of this address", "every network"])
      .describe("Which computers reach it, unless a firewall stops them."),
    tls: z
      .enum(["none", "certificate", "self-signed", "proxy"])
      .describe(
        "certificate: the user's. self-signed: made by the server. proxy: another program does TLS in front of it. none: on this machine alone.",
      ),
    previews: z
      .string()
      .nullable()
      .describe("Addresses of previews of ports, such as `https://*.preview.example.com`; null where there are none."),
    fingerprint: z.string().nullable().describe("SHA-256 of the certificate."),
  })
  .describe("What the server opens besides its socket. Callers need the token, or a browser that a link of `viv open` has logged in.")
  .meta({ id: "ServerAccess" });
export type ServerAccess = z.infer<typeof ServerAccess>;

export const ServerStatus = z
  .object({
    version: z.string().describe("Version of viv."),
    pid: z.number().int().describe("Process id of the server."),
    startedAt: z.string().describe("ISO time."),
    home: z.string().describe("State folder."),
    log: z.string().describe("Log file of the server."),
    listen: z.string().nullable().describe("Address it listens on besides its socket."),
    access: ServerAccess.nullable().describe("What that opens; null where it has its socket alone."),
    driver: z.enum([...DriverName.options, "none"]).describe("Walls in use."),
    mode: z.enum(["root", "user", "none"]).describe("root: whole machine with all users. user: one mapped user. none: no walls."),
    storage: z.enum(["btrfs", "plain", "folder"]).describe("Where volumes live."),
    limitsHeld: z.enum(["hard", "watched"]).describe("How limits are held."),
    sandboxes: z.record(z.string(), z.number().int()).describe("Sandboxes by state."),
    memory: z.object({ totalBytes: z.number(), freeBytes: z.number() }).describe("Memory of the machine."),
    load: z
      .object({
        cpus: z.number().int().describe("Processors."),
        lastMinute: z.number().describe("Processes that ran or waited to, on average."),
      })
      .describe("How busy the machine is."),
    disk: z.object({ totalBytes: z.number(), freeBytes: z.number() }).describe("Disk under the state folder."),
    newestEvent: z.number().int().describe("Sequence number of the newest event."),
  })
  .describe("The server and its machine.")
  .meta({ id: "ServerStatus" });
export type ServerStatus = z.infer<typeof ServerStatus>;

export const MachineSample = z
  .object({
    at: z.string().describe("ISO time."),
    memoryBytes: z.number().describe("Memory in use."),
    diskBytes: z.number().describe("Disk in use under the state folder."),
    load: z.number().describe("Processes that ran or waited to, on average of a minute."),
    sandboxes: z.number().int().describe("Sandboxes that ran."),
  })
  .describe("What was used of the machine at one time.")
  .meta({ id: "MachineSample" });
export type MachineSample = z.infer<typeof MachineSample>;

export const Finding = z
  .object({
    check: z.string().describe("What was looked at."),
    verdict: z.enum(["good", "reduced", "missing"]).describe("good: all there. reduced: works with a loss. missing: does not work."),
    detail: z.string().describe("What was found, one sentence."),
    remedy: z.string().nullable().describe("What would make it better."),
  })
  .describe("One finding of the doctor.")
  .meta({ id: "Finding" });
export type Finding = z.infer<typeof Finding>;

export const Doctor = z
  .object({
    wall: z.enum(["native", "folder"]).describe("The best wall to be had here."),
    mode: z.enum(["root", "user", "none"]).describe("How the native driver runs here."),
    findings: z.array(Finding),
  })
  .describe("What this machine can do.")
  .meta({ id: "Doctor" });
export type Doctor = z.infer<typeof Doctor>;

export const PruneReport = z
  .object({
    sandboxes: z.number().int().describe("Sandboxes removed."),
    snapshots: z.number().int().describe("Snapshots removed."),
    bases: z.number().int().describe("Bases removed."),
    leftovers: z.array(z.string()).describe("Leftovers removed, a sentence each."),
  })
  .describe("What was removed.");
export type PruneReport = z.infer<typeof PruneReport>;

export const TrustReport = z
  .object({
    project: z.string().describe("The project's folder."),
    file: z.string().nullable().describe("Its config file, if there is one."),
    widens: z
      .array(z.object({ key: z.string().describe("Config key."), value: z.string().describe("What it asks for, as text.") }))
      .describe("What the content widens."),
    runs: z.array(z.string()).describe("Files of the project that its lines name or run on this machine; trust is for their content, too."),
    hash: z.string().nullable().describe("Hash of the content that was read, with that of these files; null without a config."),
    trusted: z.boolean().describe("Whether the present content is trusted now."),
  })
  .describe("What a project's config asks for.");
export type TrustReport = z.infer<typeof TrustReport>;
