/** Adds a model API to the user's config. Comments and everything else in it stay as they are. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { findNodeAtLocation, parseTree, type Node } from "jsonc-parser";
import { UserConfig } from "../schema/config.ts";
import type { Provider } from "../schema/model.ts";
import { parseConfig, readConfigText } from "./project-config.ts";

export interface ConfigChange {
  readonly file: string;
  readonly text: string;
  /** What changes, line by line, with + and - before it. */
  readonly shown: readonly string[];
}

/** The config with `models.NAME` in it. Nothing is written yet. */
export function withProvider(file: string, name: string, provider: Provider): ConfigChange {
  const before = readConfigText(file) ?? "";
  const start = before.trim() === "" ? "{}\n" : before;
  parseConfig(file, start, UserConfig);
  const [, indent = "  "] = /^([ \t]+)\S/m.exec(start) ?? [];
  const entry = `"${name}": ${JSON.stringify(provider)
    .replaceAll(/([{,:])(?=")/g, "$1 ")
    .replaceAll("}", " }")}`;
  const root = parseTree(start);
  const models = root === undefined ? undefined : findNodeAtLocation(root, ["models"]);
  const text =
    models !== undefined
      ? inserted(start, models, entry, indent, 2)
      : root === undefined
        ? start
        : inserted(start, root, `"models": {\n${indent.repeat(2)}${entry}\n${indent}}`, indent, 1);
  parseConfig(file, text, UserConfig);
  return { file, text, shown: changedLines(before, text) };
}

/** First in an object: what a comment stands beside, above or behind stays next to it. The package's own edits write neighbours anew. */
function inserted(text: string, object: Node, entry: string, indent: string, depth: number): string {
  const open = object.offset + 1;
  const isEmpty = object.children === undefined || object.children.length === 0;
  const [line] = /^[ \t]*(\/\/[^\n]*|\/\*[^\n]*?\*\/[ \t]*)?\r?\n/.exec(text.slice(open)) ?? [];
  const put = (at: number, what: string): string => text.slice(0, at) + what + text.slice(at);
  if (line !== undefined) return put(open + line.length, `${indent.repeat(depth)}${entry}${isEmpty ? "" : ","}\n`);
  return put(open, isEmpty ? `\n${indent.repeat(depth)}${entry}\n${indent.repeat(depth - 1)}` : ` ${entry},`);
}

/** All of it or nothing; a file that others could not read stays so. */
export function writeConfig({ file, text }: ConfigChange): void {
  mkdirSync(dirname(file), { recursive: true });
  const mode = (statSync(file, { throwIfNoEntry: false })?.mode ?? 0o600) & 0o777;
  const beside = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    writeFileSync(beside, text, { flag: "wx", mode: 0o600, flush: true });
    chmodSync(beside, mode);
    renameSync(beside, file);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}

/** One block: what is between the lines that both begin and end with. */
function changedLines(before: string, after: string): string[] {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
  const same = (one: number, other: number): boolean => old[one] !== undefined && old[one] === fresh[other];
  let begin = 0;
  while (same(begin, begin)) begin += 1;
  let end = 0;
  while (end < Math.min(old.length, fresh.length) - begin && same(old.length - 1 - end, fresh.length - 1 - end)) end += 1;
  const lines = (text: string[], sign: string): string[] =>
    text
      .slice(begin, text.length - end)
      .filter((line) => line !== "")
      .map((line) => `${sign} ${line}`);
  return [...lines(old, "-"), ...lines(fresh, "+")];
}
