/** The log of a command, as process 1 or the server keeps it: `<exec>.log.1`, then `<exec>.log`, each a recording of frames. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { Fields, type Frame, FrameDecoder, FrameError, KIND } from "../../base/host/frames.ts";
import type { CommandLog, OutputChunk, RawExit } from "./drivers.ts";
import { exitOf, outputOf } from "./command-frames.ts";

interface LogFile {
  /** Bytes of output before this file. */
  readonly offset: number;
  readonly chunks: readonly OutputChunk[];
  readonly exit: RawExit | null;
}

/** The frames that are whole: a command that still runs may be in the middle of one, a full disk may have torn the last. */
function wholeFrames(data: Buffer): Frame[] {
  const decoder = new FrameDecoder();
  decoder.feed(data);
  const frames: Frame[] = [];
  try {
    for (let frame = decoder.next(); frame !== undefined; frame = decoder.next()) frames.push(frame);
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
  }
  return frames;
}

/** The folder belongs to the sandbox's ids, so a name in it may be anything: links and fifos are not followed or waited for. */
async function readLogFile(path: string): Promise<LogFile | undefined> {
  let data: Buffer;
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) return undefined;
      data = await file.readFile();
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP") return undefined;
    throw error;
  }
  const [head, ...rest] = wholeFrames(data);
  if (head?.kind !== KIND.reply) return undefined;
  const last = rest.findLast((frame) => frame.kind === KIND.exit);
  return {
    offset: new Fields(head.payload).number("offset") ?? 0,
    chunks: rest.map(outputOf).filter((chunk) => chunk !== undefined),
    exit: last === undefined ? null : exitOf(new Fields(last.payload)),
  };
}

const sizeOf = (chunk: OutputChunk): number => (chunk.stream === "gap" ? chunk.bytes : chunk.data.length);

/** Leaves out what lies before `from`; a chunk across the border is cut. */
function after(chunks: readonly OutputChunk[], offset: number, from: number): CommandLog["chunks"] {
  const kept: OutputChunk[] = [];
  let at = offset;
  for (const chunk of chunks) {
    const end = at + sizeOf(chunk);
    const skip = Math.max(0, from - at);
    at = end;
    if (end <= from) continue;
    kept.push(
      chunk.stream === "gap" ? { stream: "gap", bytes: chunk.bytes - skip } : { stream: chunk.stream, data: chunk.data.subarray(skip) },
    );
  }
  return kept;
}

const endOf = (file: LogFile): number => file.chunks.reduce((sum, chunk) => sum + sizeOf(chunk), file.offset);

/** Both files, as one moment saw them: when one became the other between the two reads, they are read again. */
async function readBoth(folder: string, command: string): Promise<LogFile[]> {
  let files: LogFile[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    const older = await readLogFile(join(folder, `${command}.log.1`));
    const newer = await readLogFile(join(folder, `${command}.log`));
    files = [older, newer].filter((file) => file !== undefined);
    if (older === undefined || newer === undefined || newer.offset === endOf(older)) break;
    if (newer.offset < endOf(older)) files = [older];
  }
  return files;
}

/** What is logged of a command from byte `from` of its output on; empty when there is no log. */
export async function readLog(folder: string, command: string, from = 0): Promise<CommandLog> {
  const files = await readBoth(folder, command);
  const [first] = files;
  if (first === undefined) return { chunks: [], offset: 0, exit: null };
  const chunks: OutputChunk[] = [];
  let end = first.offset;
  for (const file of files) {
    if (file.offset > end) chunks.push({ stream: "gap", bytes: file.offset - end });
    for (const chunk of file.chunks) chunks.push(chunk);
    end = endOf(file);
  }
  return {
    chunks: after(chunks, first.offset, from),
    offset: Math.max(first.offset, from),
    exit: files.findLast((file) => file.exit !== null)?.exit ?? null,
  };
}
