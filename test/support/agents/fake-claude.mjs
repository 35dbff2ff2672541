#!/usr/bin/env node
// Speaks Claude Code's stream-json on stdin and stdout, without a model: the task says what to do, a word and its argument a line.
//   call COMMAND      a Bash call that asks its hook, runs, and tells the result
//   unasked COMMAND   the same, but it asks nothing, as one whose hook was switched off
//   write PATH TEXT   a Write call
//   ask ROLE JSON     asks a sibling by Vivarium's tool, again and again while no server is there
//   text TEXT         says something
//   spend MODEL       asks that model something, and says the status of the answer
//   many N            says N short things, as fast as they are taken
//   hold FILE         waits until the file is there, or until its turn is interrupted
//   raw TEXT          prints that line as it is
//   flood BYTES       prints that many bytes without a line end
//   exit CODE         ends at once
// As a reviewer it does what the request says in lines that begin with `do`, which are quoted in its task, and ends with its last words.
//   keep FILE         writes down what it was given
// What stands before the end of a record of another run is not done.
import { execSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, watch, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { request } from "node:http";
import { createInterface } from "node:readline";

const session = "00000000-0000-4000-8000-000000000001";
const put = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
let last = "done";
const say = (text) => {
  last = text;
  return put({ type: "assistant", parent_tool_use_id: null, message: { content: [{ type: "text", text }] } });
};
const waiting = new Map();
const queue = [];
let busy = false;
const interrupt = { asked: false };
let calls = 0;
let requests = 0;

function ask(tool, input, call) {
  const id = `request-${process.pid}-${(requests += 1)}`;
  put({
    type: "control_request",
    request_id: id,
    request: { subtype: "hook_callback", callback_id: "policy", input: { tool_name: tool, tool_input: input, tool_use_id: call } },
  });
  return new Promise((resolve) => waiting.set(id, resolve));
}

async function use(tool, input, work, isAsked = true) {
  const call = `call-${process.pid}-${(calls += 1)}`;
  put({
    type: "assistant",
    parent_tool_use_id: null,
    message: { content: [{ type: "tool_use", id: call, name: tool, input }], usage: { input_tokens: 10 } },
  });
  const unasked = { hookSpecificOutput: { permissionDecision: "allow" } };
  const { permissionDecision, permissionDecisionReason } = (isAsked ? await ask(tool, input, call) : unasked).hookSpecificOutput;
  const allowed = permissionDecision === "allow";
  let [content, failed] = [allowed ? "" : `PreToolUse hook error: ${permissionDecisionReason}`, !allowed];
  try {
    if (allowed) content = await work();
  } catch (error) {
    [content, failed] = [String(error.stderr ?? error.message), true];
  }
  put({
    type: "user",
    parent_tool_use_id: null,
    message: { content: [{ type: "tool_result", tool_use_id: call, content, is_error: failed }] },
  });
}

async function coordinate(to, body) {
  for (;;) {
    try {
      return await new Promise((resolve, reject) => {
        const sent = request({ host: "127.0.0.1", port: 4097, method: "POST", path: `/sandbox/${to}/coordinate` }, (response) => {
          let answer = "";
          response
            .on("data", (part) => (answer += part))
            .on("end", () => resolve(answer))
            .on("error", reject);
        });
        sent.on("error", reject).end(body);
      });
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

async function spend(model) {
  const body = JSON.stringify({ model, max_tokens: 1, messages: [{ role: "user", content: "x" }] });
  const headers = { "content-type": "application/json", "x-api-key": process.env.ANTHROPIC_API_KEY ?? "" };
  const { status } = await fetch(`${process.env.ANTHROPIC_BASE_URL}/v1/messages`, { method: "POST", headers, body });
  say(`spent ${status}`);
}

async function hold(file) {
  while (!existsSync(file) && !interrupt.asked) {
    await new Promise((resolve) => {
      const watcher = watch(dirname(file), () => (watcher.close(), resolve()));
      setTimeout(() => (watcher.close(), resolve()), 200);
    });
  }
}

async function step(line, given) {
  const [, word, rest = ""] = /^(\S+) ?(.*)$/.exec(line) ?? [];
  if (word === "call") await use("Bash", { command: rest }, () => execSync(rest, { encoding: "utf8" }));
  else if (word === "unasked") await use("Bash", { command: rest }, () => execSync(rest, { encoding: "utf8" }), false);
  else if (word === "write") {
    const [, path, text] = /^(\S+) ?(.*)$/.exec(rest) ?? [];
    await use("Write", { file_path: path, content: text }, () => (writeFileSync(path, `${text}\n`), "written"));
  } else if (word === "ask") {
    const [, to, body] = /^(\S+) (.*)$/.exec(rest) ?? [];
    await use("mcp__vivarium__coordinate_sibling", { targetSandboxId: to }, () => coordinate(to, body));
  } else if (word === "text") say(rest);
  else if (word === "many")
    for (let said = 1; said <= Number(rest); said += 1) {
      if (!say(`step ${said}`)) await once(process.stdout, "drain");
    }
  else if (word === "spend") await spend(rest);
  else if (word === "hold") await hold(rest);
  else if (word === "raw") process.stdout.write(`${rest}\n`);
  else if (word === "flood")
    for (let left = Number(rest); left > 0; left -= 1 << 16)
      await new Promise((done) => process.stdout.write("x".repeat(Math.min(left, 1 << 16)), done));
  else if (word === "exit") process.exit(Number(rest));
  else if (word === "keep") writeFileSync(rest, given);
}

/** What was said meanwhile is heard between two steps. */
function hear() {
  for (const { uuid, text } of queue.splice(0)) {
    put({ type: "user", uuid, isReplay: true, message: { role: "user", content: [{ type: "text", text }] } });
    say(`heard: ${text}`);
  }
}

const ABORTED = { subtype: "error_during_execution", is_error: true, total_cost_usd: 0, terminal_reason: "aborted_tools", type: "result" };

/** What came meanwhile begins the next turn. */
function endInterrupted() {
  [busy, interrupt.asked] = [false, false];
  put(ABORTED);
  const next = queue.shift();
  if (next !== undefined) void turn(next);
}

async function turn({ uuid, text }) {
  busy = true;
  put({ type: "system", subtype: "init", session_id: session, model: "fake", claude_code_version: "0.0.0" });
  put({ type: "user", uuid, isReplay: true, message: { role: "user", content: [{ type: "text", text }] } });
  // A state of the project that no agent bears.
  if (existsSync("dies")) process.kill(process.pid, "SIGKILL");
  const isReview = text.startsWith("Review the change");
  const told = text.replace(/^[^]*\nEnd of the record.*\n\n/, "");
  const lines = told.split("\n").flatMap((line) => (isReview ? (/^> do (.*)$/.exec(line)?.slice(1) ?? []) : [line]));
  for (const line of lines) {
    await step(line.trim(), text);
    if (interrupt.asked) return endInterrupted();
    hear();
  }
  // An agent that is stuck does the same again and again, in every turn, as long as the file says what.
  while (existsSync("loops")) {
    await use("Bash", { command: readFileSync("loops", "utf8").trim() }, () => execSync("cat no-such-file", { encoding: "utf8" }));
    hear();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  busy = false;
  put({
    subtype: "success",
    is_error: false,
    result: isReview ? last : "done",
    total_cost_usd: 0,
    usage: { input_tokens: 10, output_tokens: 5 },
    session_id: session,
    terminal_reason: "completed",
    type: "result",
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const said = JSON.parse(line);
  if (said.type === "control_response") {
    waiting.get(said.response.request_id)?.(said.response.response);
    waiting.delete(said.response.request_id);
  } else if (said.type === "control_request" && said.request.subtype === "initialize")
    put({ type: "control_response", response: { subtype: "success", request_id: said.request_id, response: {} } });
  else if (said.type === "control_request" && said.request.subtype !== "interrupt")
    put({ type: "control_response", response: { subtype: "error", request_id: said.request_id, error: "unsupported" } });
  else if (said.type === "control_request") {
    put({ type: "control_response", response: { subtype: "success", request_id: said.request_id, response: {} } });
    if (busy) interrupt.asked = true;
    else put(ABORTED);
  } else if (said.type === "user") {
    const message = { uuid: said.uuid, text: said.message.content[0].text };
    put({ type: "command_lifecycle", command_uuid: message.uuid, state: "queued" });
    if (busy) {
      queue.push(message);
    } else void turn(message);
  }
}
