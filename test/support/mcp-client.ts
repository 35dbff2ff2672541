/** The protocol's own client, speaking to `viv mcp` as a chat client does. */
import { Client, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { PROGRAM } from "./compiled.ts";
import type { TestServer } from "./server.ts";
import { vivEnvironment } from "./viv.ts";

export type Era = "legacy" | "modern";
export const ERAS: readonly Era[] = ["legacy", "modern"];

/** 2025-11-25 by its handshake, or 2026-07-28. */
export function negotiation(era: Era): ClientOptions {
  return { versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: "2026-07-28" } } };
}

export interface ChatOptions {
  readonly era?: Era;
  readonly words?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly name?: string;
  /** What the person answers; left out, the client can't ask. */
  readonly person?: (message: string) => { action: "accept"; content: Record<string, string | boolean> } | { action: "decline" | "cancel" };
}

export async function chat(server: Pick<TestServer, "place" | "paths">, options: ChatOptions = {}): Promise<Client> {
  const { era = "modern", words = [], person } = options;
  const client = new Client(
    { name: options.name ?? "a-test", version: "1" },
    { ...negotiation(era), capabilities: person === undefined ? {} : { elicitation: {} } },
  );
  if (person !== undefined) client.setRequestHandler("elicitation/create", ({ params }) => person(params.message));
  const env = Object.fromEntries(
    Object.entries(vivEnvironment(server, options.env)).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
  await client.connect(
    new StdioClientTransport({ command: PROGRAM, args: ["mcp", ...words], env, cwd: options.cwd ?? server.place, stderr: "pipe" }),
  );
  return client;
}
