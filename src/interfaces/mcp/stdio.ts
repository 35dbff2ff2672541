/** The tools over standard input and output, for a client that starts this program. */
import { Readable, type Writable } from "node:stream";
import { serveStdio as serve, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { LIMITS } from "../../base/schema/limits.ts";
import { LongLine, tooLong } from "./long-message.ts";
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
  const refuse = (line: LongLine): unknown => output.write(`${tooLong(line.id)}\n`);
  const lines = Readable.from(wholeLines(input, LIMITS.maxToolMessageBytes, refuse), { objectMode: false });
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
 * A line that is longer than `most` is left out, and goes to `refuse` instead.
 */
export async function* wholeLines(
  input: AsyncIterable<Buffer>,
  most: number,
  refuse: (line: LongLine) => void,
): AsyncGenerator<Buffer, void, void> {
  let begun: Buffer[] = [];
  let size = 0;
  let long: LongLine | undefined;
  /** Keeps a part of a line, or only the ends of a line that has become too long. */
  const take = (part: Buffer): void => {
    size += part.length;
    begun.push(part);
    if (size <= most) return;
    long ??= new LongLine();
    for (const one of begun) long.add(one);
    begun = [];
  };
  for await (const chunk of input) {
    let rest = chunk;
    for (let end = rest.indexOf(LINE_END); end >= 0; end = rest.indexOf(LINE_END)) {
      take(rest.subarray(0, end + 1));
      const [only] = begun;
      if (long !== undefined) refuse(long);
      else yield begun.length === 1 && only !== undefined ? only : Buffer.concat(begun);
      rest = rest.subarray(end + 1);
      begun = [];
      size = 0;
      long = undefined;
    }
    take(rest);
  }
}
