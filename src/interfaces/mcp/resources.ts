/** Logs, diffs and files as resources: a client reads them when it needs them, and a model's context holds only their address. */
import { text as readText } from "node:stream/consumers";
import { ResourceTemplate, type McpServer, type ReadResourceResult, type Variables } from "@modelcontextprotocol/server";
import type { Client } from "../client/client.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { McpParts } from "./parts.ts";
import { clean } from "./results.ts";
import { runLog } from "./run-work.ts";
import { sandboxOf } from "./sessions.ts";
import { readWhole } from "./downloads.ts";

const LISTED = 50;

export function addResources(server: McpServer, parts: McpParts): void {
  const template = (rest: string, list?: (client: Client) => Promise<{ uri: string; name: string }[]>): ResourceTemplate =>
    new ResourceTemplate(`viv://{session}/${rest}`, {
      list: list === undefined ? undefined : async () => ({ resources: await list(await parts.client()) }),
    });
  const add = (
    name: string,
    at: ResourceTemplate,
    title: string,
    read: (client: Client, uri: URL, variables: Variables) => Promise<ReadResourceResult["contents"][number]>,
  ): void => {
    server.registerResource(name, at, { title }, async (uri, variables) => ({
      contents: [await read(await parts.client(), uri, variables)],
    }));
  };
  add("log", template("log", recentLogs), "What an agent said and did", async (client, { href: uri }, { session }) => ({
    uri,
    mimeType: "text/plain",
    text: await runLog(client, String(session)),
  }));
  add("diff", template("diff"), "What was changed, as a patch", async (client, { href: uri }, { session }) => ({
    uri,
    mimeType: "text/x-diff",
    text: clean(await patchOf(client, await sandboxOf(client, String(session)))),
  }));
  add("file", template("files/{+path}"), "A file of a sandbox", async (client, { href: uri }, { session, path }) => {
    const content = await readWhole(
      client,
      await sandboxOf(client, String(session)),
      decodeURIComponent(String(path)),
      LIMITS.maxGivenFileBytes,
    );
    const isText = isUtf8Text(content);
    return isText
      ? { uri, mimeType: "text/plain", text: content.toString("utf8") }
      : { uri, mimeType: "application/octet-stream", blob: content.toString("base64") };
  });
}

async function recentLogs(client: Client): Promise<{ uri: string; name: string }[]> {
  const { runs } = await client.call("listRuns", {});
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
