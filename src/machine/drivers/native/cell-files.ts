/** Files of a sandbox, reached from inside with a user's rights. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import {
  chunkMaxBytes,
  encodeFields,
  encodeFrame,
  type FieldList,
  type FieldValue,
  Fields,
  KIND,
  PROTOCOL_VERSION,
} from "../../../base/host/frames.ts";
import { FileChange, type FileEntry, FileType } from "../../../base/schema/files.ts";
import type { CarryDirection, FileOperations, FileStep, MoveFile } from "../drivers.ts";
import { isoTime, safeSize } from "../file-numbers.ts";
import { ask, askList, errorOf, framesOf, lost, openSocket, type Subject } from "./cell-connection.ts";
import { decodePath, encodePath } from "../../../base/schema/path-bytes.ts";

function entryOf(fields: Fields): FileEntry {
  const target = fields.raw("target");
  return {
    path: decodePath(fields.raw("path") ?? Buffer.from(".")),
    type: FileType.parse(fields.get("type")),
    size: safeSize(fields.number("size") ?? 0),
    mode: fields.get("mode") ?? "",
    modifiedAt: isoTime(fields.number("mtime_ms") ?? 0),
    uid: fields.number("uid") ?? 0,
    gid: fields.number("gid") ?? 0,
    target: target === undefined ? null : decodePath(target),
  };
}

function common(path: string, user: string): [string, FieldValue][] {
  return [
    ["path", encodePath(path)],
    ["user", user],
  ];
}

const flag = (value: boolean | undefined): string => (value === true ? "1" : "0");

async function* dataFrames(body: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, void> {
  for await (const part of body) {
    for (let at = 0; at < part.length; at += chunkMaxBytes) yield encodeFrame(KIND.data, part.subarray(at, at + chunkMaxBytes));
  }
}

async function* stepFrames(steps: AsyncIterable<FileStep>): AsyncGenerator<Buffer, void, void> {
  for await (const step of steps) {
    const fields: [string, FieldValue][] = [
      ["do", step.do],
      ["path", encodePath(step.path)],
    ];
    if (step.do === "file") fields.push(["executable", flag(step.executable)]);
    if (step.do === "link") fields.push(["target", encodePath(step.target)]);
    yield encodeFrame(KIND.entry, encodeFields(fields));
    if (step.do === "file") yield* dataFrames(step.body);
  }
}

/** Sends what follows a request, unless the answer, which can only be a refusal now, comes first. */
async function upload(socket: Socket, frames: AsyncIterable<Buffer>, answer: Promise<unknown>): Promise<void> {
  const refused = new AbortController();
  const stop = (): void => refused.abort();
  answer.then(stop, stop);
  for await (const frame of frames) {
    if (refused.signal.aborted) return;
    if (!socket.write(frame)) await Promise.race([once(socket, "drain"), answer]);
  }
  socket.write(encodeFrame(KIND.end));
}

/** A request that goes on with frames of the client: a reply, the frames, another reply. */
async function send(socket: Socket, subject: Subject, following: AsyncIterable<Buffer>): Promise<Fields> {
  const frames = framesOf(socket, subject);
  const ready = await frames.next();
  if (ready.done === true) throw lost(subject);
  const answer = frames.next(); // the cell reports a full disk while the content is still on its way
  try {
    await upload(socket, following, answer);
  } catch (error) {
    socket.destroy(); // the connection ends before END: nothing more is changed
    await answer.catch(() => undefined);
    throw error;
  }
  const done = await answer;
  if (done.done === true || done.value.kind !== KIND.reply) throw lost(subject);
  await frames.return();
  return new Fields(done.value.payload);
}

export class CellFiles implements FileOperations {
  readonly #socket: string;

  constructor(socketPath: string) {
    this.#socket = socketPath;
  }

  async stat(path: string, user: string): Promise<FileEntry> {
    const [entry] = await askList(this.#socket, "file.stat", common(path, user), { name: path, user });
    if (entry === undefined) throw lost(path);
    return entryOf(entry);
  }

  async list(path: string, user: string, depth: number, limit: number): Promise<FileEntry[]> {
    const fields: FieldList = [...common(path, user), ["depth", String(depth)], ["limit", String(limit)]];
    return (await askList(this.#socket, "file.list", fields, { name: path, user })).map(entryOf);
  }

  async read(path: string, user: string, range?: { offset: number; length: number }): Promise<{ entry: FileEntry; body: Readable }> {
    const fields = common(path, user);
    if (range !== undefined) fields.push(["offset", String(range.offset)], ["length", String(range.length)]);
    const frames = framesOf(openSocket(this.#socket, "file.read", fields), { name: path, user });
    const first = await frames.next();
    if (first.done === true || first.value.kind !== KIND.reply) throw lost(path);
    const entry = entryOf(new Fields(first.value.payload));
    async function* content(): AsyncGenerator<Buffer, void, void> {
      for await (const frame of frames) {
        if (frame.kind === KIND.end) return;
        if (frame.kind === KIND.data) yield frame.payload;
      }
      throw lost(path); // without END the file is not whole
    }
    return { entry, body: Readable.from(content(), { objectMode: false }) };
  }

  async write(
    path: string,
    user: string,
    body: AsyncIterable<Uint8Array>,
    options: { mode?: number; parents?: boolean; append?: boolean },
  ): Promise<void> {
    const fields = [...common(path, user)];
    if (options.mode !== undefined) fields.push(["mode", options.mode.toString(8)]);
    fields.push(["parents", flag(options.parents)], ["append", flag(options.append)]);
    await send(openSocket(this.#socket, "file.write", fields), { name: path, user }, dataFrames(body));
  }

  async carry(path: string, user: string, direction: CarryDirection, move: MoveFile): Promise<void> {
    const fields: [string, FieldValue][] = [
      ["v", String(PROTOCOL_VERSION)],
      ["op", `file.${direction.op}`],
      ...common(path, user),
      ["hand", "1"],
    ];
    if (direction.op === "write" && direction.mode !== undefined) fields.push(["mode", direction.mode.toString(8)]);
    const answer = await move(this.#socket, encodeFields(fields));
    if (answer.kind === KIND.error) throw errorOf(answer, { name: path, user });
  }

  async apply(folder: string, user: string, steps: AsyncIterable<FileStep>, since = 0): Promise<string[]> {
    const socket = openSocket(this.#socket, "file.apply", [...common(folder, user), ["since_ms", String(since)]]);
    const answer = await send(socket, { name: folder, user }, stepFrames(steps));
    return answer.rawAll("late").map(decodePath);
  }

  async move(path: string, to: string, user: string, replace: boolean): Promise<void> {
    await ask(this.#socket, "file.move", [...common(path, user), ["to", encodePath(to)], ["replace", flag(replace)]], { name: path, user });
  }

  async remove(path: string, user: string, recursive: boolean): Promise<void> {
    await ask(this.#socket, "file.remove", [...common(path, user), ["recursive", flag(recursive)]], { name: path, user });
  }

  async mkdir(path: string, user: string, parents: boolean): Promise<void> {
    await ask(this.#socket, "file.mkdir", [...common(path, user), ["parents", flag(parents)]], { name: path, user });
  }

  async *watch(path: string, user: string, recursive: boolean, signal: AbortSignal): AsyncGenerator<FileChange, void, void> {
    const socket = openSocket(this.#socket, "file.watch", [...common(path, user), ["recursive", flag(recursive)]]);
    const stop = () => socket.destroy();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      for await (const frame of framesOf(socket, { name: path, user })) {
        if (frame.kind !== KIND.event) continue;
        const fields = new Fields(frame.payload);
        yield { change: FileChange.shape.change.parse(fields.get("event")), path: decodePath(fields.raw("path") ?? Buffer.from(".")) };
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }
}
