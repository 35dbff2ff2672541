/** A value that is not for arguments, since those are in every list of processes: asked for without echo, or read from a pipe. */
import { text } from "node:stream/consumers";
import type { ReadStream } from "node:tty";
import { VivError } from "../../base/schema/errors.ts";

const [ENTER, RETURN, END, INTERRUPT, BACKSPACE, DELETE] = ["\n", "\r", "\u0004", "\u0003", "\b", "\u007f"];

export async function hiddenInput(question: string): Promise<string> {
  const value = process.stdin.isTTY ? await ask(process.stdin, question) : (await text(process.stdin)).replace(/\r?\n$/, "");
  if (value === "") throw new VivError("invalid_input", "The value is empty.", { remedy: "Type it, or pipe it in." });
  return value;
}

function ask(terminal: ReadStream, question: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let typed = "";
  process.stderr.write(question);
  terminal.setRawMode(true);
  terminal.setEncoding("utf8");
  const hear = (characters: string): void => {
    for (const character of characters) {
      if (character === INTERRUPT) return reject(new VivError("cancelled", "Nothing was kept."));
      if (character === ENTER || character === RETURN || character === END) return resolve(typed);
      typed = character === BACKSPACE || character === DELETE ? typed.slice(0, -1) : typed + character;
    }
  };
  // A question before this one has left it paused.
  terminal.on("data", hear).resume();
  return promise.finally(() => {
    terminal.off("data", hear);
    terminal.setRawMode(false);
    terminal.pause();
    process.stderr.write("\n");
  });
}
