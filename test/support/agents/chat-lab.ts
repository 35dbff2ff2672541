/** A server with agents that do what their task says line by line, for chat clients: they work in an empty workspace, too. */
import { chmodSync, copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CallToolResult, Client } from "@modelcontextprotocol/client";
import { CHECKOUT } from "../compiled.ts";
import { chat, type ChatOptions } from "../mcp-client.ts";
import { TestServer, type TestServerOptions } from "../server.ts";
import { viv } from "../viv.ts";

const FAKE = fileURLToPath(new URL("fake-claude.mjs", import.meta.url));
/** Sandboxes see the checkout, but not the folder of the test. */
const PROGRAMS = join(CHECKOUT, ".cache/fake-agents");

export type Fields = Readonly<Record<string, unknown>>;

export class ChatLab {
  readonly server: TestServer;
  readonly #clients: Client[] = [];

  private constructor(server: TestServer) {
    this.server = server;
  }

  static async open(options: TestServerOptions = {}): Promise<ChatLab> {
    mkdirSync(PROGRAMS, { recursive: true });
    copyFileSync(FAKE, join(PROGRAMS, "claude"));
    chmodSync(join(PROGRAMS, "claude"), 0o755);
    const models = { anthropic: { url: "http://127.0.0.1:9", secret: "anthropic" } };
    const server = await TestServer.start({ ...options, config: { models, ...(options.config as object | undefined) } });
    viv(server, ["secret", "set", "anthropic", "--host", "127.0.0.1:9", "--all-projects"], { input: "not-used\n" });
    return new ChatLab(server);
  }

  static get path(): string {
    return `${PROGRAMS}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`;
  }

  async client(options: ChatOptions = {}): Promise<Client> {
    const client = await chat(this.server, { ...options, env: { PATH: ChatLab.path, ...options.env } });
    this.#clients.push(client);
    return client;
  }

  async remove(): Promise<void> {
    for (const client of this.#clients) await client.close();
    await this.server.remove();
  }
}

/** What a tool answered; an error is thrown with its text. */
export async function use(client: Client, name: string, args: Fields = {}): Promise<Fields> {
  const answer = await client.callTool({ name, arguments: { ...args } });
  if (answer.isError === true) throw new Error(textOf(answer));
  return answer.structuredContent as Fields;
}

/** The text of a refusal. */
export async function refusal(client: Client, name: string, args: Fields): Promise<string> {
  const answer = await client.callTool({ name, arguments: { ...args } });
  if (answer.isError !== true) throw new Error(`${name} was not refused: ${textOf(answer)}`);
  return textOf(answer);
}

function textOf({ content }: CallToolResult): string {
  return content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}
