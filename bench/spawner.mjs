/**
 * A small process that starts programs and says how long they took, from spawn to exit. The cost of a fork follows the
 * size of the process that forks, so a peer is not started from the benchmark itself. One JSON line in, one out.
 */
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { createInterface } from "node:readline";

function run({ command, cwd, stdio, env, input }) {
  const descriptor = input === undefined ? undefined : openSync(input, "r");
  const streams = descriptor === undefined ? stdio : [descriptor, stdio, stdio];
  const began = performance.now();
  const child = spawn(command[0], command.slice(1), { cwd, stdio: streams, env: { ...process.env, ...env } });
  if (descriptor !== undefined) closeSync(descriptor);
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ error: error.message }));
    child.once("exit", (code, signal) => resolve({ ms: performance.now() - began, code, signal }));
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
}
