/** Reads server-sent events. */
import { isErrorCode, VivError, type ErrorBody } from "../../base/schema/errors.ts";

function parseFrame(frame: string): { event: string; data: string } {
  const lines = frame.split("\n");
  const field = (name: string): string[] => lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
  return { event: field("event")[0] ?? "message", data: field("data").join("\n") };
}

function failure(data: string): VivError {
  const body = JSON.parse(data) as ErrorBody;
  return isErrorCode(body.error.code) ? VivError.fromBody(body) : new VivError("internal", body.error.message);
}

export async function* readEvents<Data>(body: AsyncIterable<Uint8Array>): AsyncGenerator<Data, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const frames = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const { event, data } = parseFrame(frame);
      if (event === "error") throw failure(data);
      if (data !== "") yield JSON.parse(data) as Data;
    }
  }
}
