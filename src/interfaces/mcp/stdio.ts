/** The tools over standard input and output, for a client that starts this program. */
import { Readable, type Writable } from "node:stream";
import { serveStdio as serve, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { LIMITS } from "../../base/schema/limits.ts";
import { mcpServers } from "./mcp.ts";
import type { McpParts } from "./parts.ts";

const LINE_END = 0x0a;

export interface ClientStreams {
  readonly input: Readable;
  readonly output: Writable;
}

/** Resolves when the client has gone, or the signal comes. */
export async function serveStdio(
  parts: McpParts,
  approver: () => string | undefined,
  { input, output }: ClientStreams,
  signal: AbortSignal,
): Promise<void> {
  const lines = Readable.from(wholeLines(input, LIMITS.maxToolMessageBytes), { objectMode: false });
  const transport = new StdioServerTransport(lines, output, { maxBufferSize: 2 * LIMITS.maxToolMessageBytes });
  const gone = Promise.withResolvers<void>();
  input.once("end", gone.resolve).once("close", gone.resolve);
  signal.addEventListener("abort", () => gone.resolve(), { once: true });
  const handle = serve(mcpServers(parts, approver), { transport });
  await gone.promise;
  await handle.close();
}

/**
 * A line at a time: the transport copies what it has at every piece that comes, which takes minutes for a message with a large file.
 * A line that is longer than `most` is left out.
 */
export async function* wholeLines(input: AsyncIterable<Buffer>, most: number): AsyncGenerator<Buffer, void, void> {
  let begun: Buffer[] = [];
  let size = 0;
  for await (const chunk of input) {
    let rest = chunk;
    for (let end = rest.indexOf(LINE_END); end >= 0; end = rest.indexOf(LINE_END)) {
      const whole = [...begun, rest.subarray(0, end + 1)];
      if (size + end < most) yield whole.length === 1 ? (whole[0] ?? rest) : Buffer.concat(whole);
      rest = rest.subarray(end + 1);
      begun = [];
      size = 0;
    }
    size += rest.length;
    if (size <= most) begun.push(rest);
    else begun = [];
  }
}
