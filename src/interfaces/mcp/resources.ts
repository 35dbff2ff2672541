/** Logs, diffs and files as resources: a client reads them when it needs them, and a model's context holds only their address. */
import { text as readText } from "node:stream/consumers";
import { ResourceTemplate, type McpServer, type ReadResourceResult, type Variables } from "@modelcontextprotocol/server";
import type { Client } from "../client/client.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { McpParts } from "./parts.ts";
import { clean } from "./results.ts";
import { runLog } from "./run-work.ts";
import { openWork } from "./listing.ts";
import { openSession, sandboxOf, type Reader } from "./sessions.ts";
import { readWhole } from "./downloads.ts";

const LISTED = 50;

export function addResources(server: McpServer, parts: McpParts): void {
  const template = (rest: string, list?: () => Promise<{ uri: string; name: string }[]>): ResourceTemplate =>
    new ResourceTemplate(`viv://{session}/${rest}`, {
      list: list === undefined ? undefined : async () => ({ resources: await list() }),
    });
  const add = (
    name: string,
    at: ResourceTemplate,
    title: string,
    read: (reader: Reader, uri: URL, variables: Variables) => Promise<ReadResourceResult["contents"][number]>,
  ): void => {
    server.registerResource(name, at, { title }, async (uri, variables) => ({
      contents: [await read({ client: await parts.client(), parts }, uri, variables)],
    }));
  };
  const logs = template("log", async () => recentLogs(await parts.client(), parts));
  add("log", logs, "What an agent said and did", async (reader, { href: uri }, { session }) => ({
    uri,
    mimeType: "text/plain",
    text: await logOf(reader, String(session)),
  }));
  add("diff", template("diff"), "What was changed, as a patch", async (reader, { href: uri }, { session }) => ({
    uri,
    mimeType: "text/x-diff",
    text: clean(await patchOf(reader.client, await sandboxOf(reader, String(session)))),
  }));
  add("file", template("files/{+path}"), "A file of a sandbox", async (reader, { href: uri }, { session, path }) => {
    const content = await readWhole(
      reader.client,
      await sandboxOf(reader, String(session)),
      decodeURIComponent(String(path)),
      LIMITS.maxGivenFileBytes,
    );
    const isText = isUtf8Text(content);
    return isText
      ? { uri, mimeType: "text/plain", text: content.toString("utf8") }
      : { uri, mimeType: "application/octet-stream", blob: content.toString("base64") };
  });
}

async function logOf(reader: Reader, id: string): Promise<string> {
  const session = await openSession(reader, id);
  if (session.kind === "run") return runLog(reader.client, session.run.id);
  throw new VivError("invalid_input", `${JSON.stringify(id)} is not a task, so it has no log.`, {
    remedy: "Read the log of a task's session_id.",
  });
}

async function recentLogs(client: Client, parts: McpParts): Promise<{ uri: string; name: string }[]> {
  const { runs } = await openWork(client, parts);
  return runs.slice(0, LISTED).map(({ id, task }) => ({ uri: `viv://${id}/log`, name: clean(task.slice(0, 80).replaceAll(/\s+/g, " ")) }));
}

export async function patchOf(client: Client, sandbox: string): Promise<string> {
  const patch = await readText(await client.patch(sandbox));
  if (patch.length <= LIMITS.maxGivenFileBytes) return patch;
  throw new VivError("invalid_input", "The patch is too long to be read here.", { remedy: "Call download_files for single files." });
}

export function isUtf8Text(content: Buffer): boolean {
  try {
    return !new TextDecoder("utf-8", { fatal: true }).decode(content).includes("\0");
  } catch {
    return false;
  }
}
