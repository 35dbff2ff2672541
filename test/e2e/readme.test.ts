/** The README's tour, run as a reader would, on a terminal. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { PROGRAM } from "../support/compiled.ts";
import { vivEnvironment } from "../support/viv.ts";

const README = readFileSync(join(import.meta.dirname, "..", "..", "README.md"), "utf8");
const PLACE = "/tmp/hello";
/** Stands before the output of every line. */
const MARK = "\u001e";

interface Step {
  readonly line: string;
  readonly shown: string;
}

function tour(): Step[] {
  const blocks = [...README.matchAll(/```console\n([^]*?)```/g)].map(([, block = ""]) => block).join("");
  return stepsOf(blocks.split("\n"));
}

function stepsOf(lines: readonly string[]): Step[] {
  const steps: { line: string; shown: string[] }[] = [];
  for (const text of lines) {
    if (text.startsWith("$ ")) steps.push({ line: text.slice(2), shown: [] });
    else steps.at(-1)?.shown.push(text);
  }
  return steps.map(({ line, shown }) => ({ line, shown: shown.join("\n").trim() }));
}

/** What differs from machine to machine and from minute to minute. */
function alike(output: string, line: string): string {
  const lines = output
    .replaceAll(/\d+(\.\d+)? m?s\b/g, "TIME")
    .replaceAll(/\b(now|TIME ago)\b/g, "AGO")
    .replaceAll(/\bin \d+ (h|min)\b/g, "SOON")
    .replaceAll(/\b[a-z]+-[a-z]+(?=\s|$)/g, "NAME")
    .replaceAll(/^\d+$/gm, "COUNT")
    .replaceAll(/ {2,}/g, "  ")
    .split("\n")
    .map((text) => text.trim());
  // They are thrown away side by side.
  return (line === "viv rm --all" ? lines.toSorted() : lines).join("\n").trim();
}

async function onTerminal(script: string, env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn("script", ["-qec", `bash ${script}`, "/dev/null"], { env, stdio: ["pipe", "pipe", "inherit"] });
  const parts: Buffer[] = [];
  child.stdout.on("data", (part: Buffer) => parts.push(part));
  await once(child, "close");
  return Buffer.concat(parts).toString().replaceAll("\r\n", "\n");
}

describe("the README", needs("root", "btrfs", "curl"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });

  afterAll(async () => server.remove());

  test("CLI-1: has a tour that runs as written and answers as shown", async () => {
    const steps = tour();
    expect(steps.length).toBeGreaterThan(10);
    const place = join(server.place, "hello");
    const script = join(server.place, "tour.sh");
    const lines = steps.map(({ line }) => `printf '${MARK}'\n${line.replaceAll(PLACE, place)}`);
    writeFileSync(script, ["stty cols 200 -echo", ...lines, ""].join("\n"));
    const path = [dirname(PROGRAM), process.env["PATH"] ?? ""].join(delimiter);
    const output = await onTerminal(script, { ...vivEnvironment(server), PATH: path, NO_COLOR: "1", TERM: "dumb" });
    const answers = output.replaceAll(place, PLACE).split(MARK).slice(1);
    expect(steps.map(({ line }, index) => [line, alike(answers[index] ?? "", line)])).toEqual(
      steps.map(({ line, shown }) => [line, alike(shown, line)]),
    );
  });
});
