/** The head of a git bundle, which a sandbox wrote. Only this file reads it; git's own checks read the pack after it. */
import { VivError } from "../../base/schema/errors.ts";

export interface BundleHead {
  /** The commit it ends with. */
  readonly tip: string;
  /** What follows: the pack. */
  readonly pack: AsyncIterable<Uint8Array>;
}

const MOST_HEAD_BYTES = 64 * 1024;

/** Reads up to the empty line; the rest comes as it is, and no more of it than `mostBytes`. */
export async function openBundle(stream: AsyncIterable<Uint8Array>, mostBytes: number): Promise<BundleHead> {
  const chunks = stream[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  let end = -1;
  while (end < 0) {
    const next = await chunks.next();
    if (next.done === true || head.length > MOST_HEAD_BYTES) throw unreadable();
    head = Buffer.concat([head, next.value]);
    end = head.indexOf("\n\n");
  }
  const [first, ...lines] = head.toString("latin1", 0, end).split("\n");
  const tips = lines.flatMap((line) => /^([0-9a-f]{40}|[0-9a-f]{64}) HEAD$/.exec(line)?.[1] ?? []);
  const [tip] = tips;
  if (!/^# v[23] git bundle$/.test(first ?? "") || tip === undefined || tips.length !== 1) throw unreadable();
  return { tip, pack: rest(head.subarray(end + 2), chunks, mostBytes) };
}

async function* rest(first: Uint8Array, chunks: AsyncIterator<Uint8Array>, mostBytes: number): AsyncGenerator<Uint8Array, void, void> {
  let left = mostBytes - first.length;
  yield first;
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    left -= next.value.length;
    if (left < 0) throw new VivError("too_large", "The commits made inside hold more than a replay takes.");
    yield next.value;
  }
}

function unreadable(): VivError {
  return new VivError("unsupported", "What the sandbox's git tells about its commits can't be read.", {
    remedy: "Promote without `--keep-commits`: the files are the same.",
  });
}
