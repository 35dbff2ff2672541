/** What the tools work with. They keep nothing of their own: everything is at the server, so that any process goes on with it. */
import type { Client } from "../client/client.ts";
import type { ToolName } from "../../base/schema/mcp.ts";

export interface McpParts {
  readonly version: string;
  /** Connects at the first use. */
  readonly client: () => Promise<Client>;
  /** What agents and commands inside get of the caller's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Folders that a client may name as a project, as real paths. */
  readonly projects: readonly string[];
  /** Where files are saved for the person; undefined where the person is not at this machine. */
  readonly downloads: string | undefined;
  readonly tools: readonly ToolName[];
  /** How long a client waits for an answer, where the person says so. */
  readonly answerWithinMs?: number | undefined;
  /** Signs what a client holds between a question and its answer. */
  readonly key: Uint8Array;
}
