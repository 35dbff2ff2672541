/** Any command as an agent: it gets the task and works until it ends. Its output is told line by line, its exit code decides. */
import { shellWord } from "../../../base/schema/shell-words.ts";
import type { AgentAbilities, AgentStart, Heard, Launch, Session } from "../adapter.ts";
import { messageText } from "./wire.ts";

export const COMMAND_ABILITIES: AgentAbilities = { messages: "never", interrupt: false, resume: false, asks: false, tools: "none" };

const TASK = "{task}";

/** The task stands where the command says `{task}`; else it is its standard input. */
export function commandLaunch(command: string | readonly string[], start: AgentStart): Launch {
  const task = messageText(start, start.task.id, start.task.text);
  const words = typeof command === "string" ? ["/bin/sh", "-c", command.replaceAll(TASK, () => shellWord(task))] : command;
  const env = { VIV_TASK_FILE: `${start.folder}/task` };
  const files = [{ path: "task", content: task }];
  const isNamed = typeof command === "string" ? command.includes(TASK) : command.some((word) => word.includes(TASK));
  if (isNamed)
    return {
      command: words.map((word) => (typeof command === "string" ? word : word.replaceAll(TASK, () => task))),
      env,
      files,
      keeps: [],
      input: false,
    };
  return { command: ["/bin/sh", "-c", 'exec "$@" <"$VIV_TASK_FILE"', "sh", ...words], env, files, keeps: [], input: false };
}

export function commandSession(name: string, title: string, start: AgentStart): Session {
  return {
    state: {},
    begin: () => [
      { event: { type: "started", agent: name, version: null, model: start.model, conversation: null } },
      { delivered: start.task.id },
      { event: { type: "turn", state: "began" } },
    ],
    line: (line) => [output("stdout", line)],
    errorLine: (line) => [output("stderr", line)],
    message: () => undefined,
    probe: () => undefined,
    interrupt: () => undefined,
    pending: () => [],
    answer: () => "",
    end: (exitCode) => [{ event: { type: "turn", state: "ended" } }, verdict(title, exitCode)],
  };
}

function output(stream: "stdout" | "stderr", line: string): Heard {
  return { event: { type: "command_output", call: null, stream, text: `${line}\n` } };
}

function verdict(title: string, exitCode: number | null): Heard {
  return exitCode === 0 ? { over: "done", reason: null } : { over: "failed", reason: `${title} ended with ${exitCode ?? "a signal"}.` };
}
