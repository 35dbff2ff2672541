/** Whether the result of a call depends on what is outside of the clone: time, processes, the network. Asking again then makes sense. */
import type { ToolKind } from "../../base/schema/run.ts";

/** Programs that wait for something, or ask about something that runs elsewhere. */
const ASKING = new Set(
  [
    "sleep wait watch inotifywait wait-on curl wget nc ncat ping dig nslookup host grpcurl websocat ps pgrep pidof lsof ss netstat top free",
    "uptime jobs journalctl gh glab az aws gcloud flyctl vercel heroku kubectl helm terraform argocd circleci pg_isready redis-cli mysqladmin",
    "rabbitmqctl squeue sacct qstat tmux screen",
  ].flatMap((line) => line.split(" ")),
);

/** Programs that do so with one of these words. */
const ASKING_WITH: Readonly<Record<string, RegExp>> = {
  docker: /\b(ps|inspect|logs?|wait|top|stats|ls)\b/,
  podman: /\b(ps|inspect|logs?|wait|top|stats|ls)\b/,
  "docker-compose": /\b(ps|logs?|top|ls)\b/,
  systemctl: /\b(status|is-active|show|list-\w+)\b/,
  service: /\bstatus\b/,
  supervisorctl: /\bstatus\b/,
  pm2: /\b(ls|list|status|logs?|show)\b/,
  git: /^git (fetch|pull|ls-remote|push)\b/,
  tail: /\s-[fF]\b/,
};

/** Words before the program of a part of a command line. */
const BEFORE_PROGRAM = /^(\s|!|\b(do|then|else|if|while|until|time|timeout\s+\S+|sudo|exec|command|nohup)\b|[A-Za-z_]\w*=\S*)+/;

const READING = /^(cat|tail|head|less|grep|rg|wc|ls|stat|test|\[)(\s|$)/;

/** Tools that look at a process of the agent's own. */
const WATCHING_TOOL = /(output|poll|status|wait|monitor|stdin|sleep|logs?)$/i;

const NETWORK_TROUBLE =
  /\b(ETIMEDOUT|ECONNRESET|ECONNREFUSED|EAI_AGAIN|ENETUNREACH|ENOTFOUND|connection (timed out|reset|refused)|temporary failure|network is unreachable|(429|502|503|504)\b|too many requests|service unavailable|gateway time-?out|rate limit)/i;

export interface Asked {
  readonly tool: string;
  readonly kind: ToolKind;
  readonly input: unknown;
  readonly ok: boolean;
  readonly output: string;
  /** Commands that run beside it. */
  readonly background: number;
}

export function dependsOnOutside({ tool, kind, input, ok, output, background }: Asked): boolean {
  if (kind === "fetch" || kind === "agent" || WATCHING_TOOL.test(tool)) return true;
  // A tool of unknown kind works on something of its own: a browser, a list that others change.
  if (kind === "other" && ok) return true;
  if (!ok && NETWORK_TROUBLE.test(output)) return true;
  // While a command runs in the background, its output is looked at by reading.
  if (background > 0 && (kind === "read" || kind === "search")) return true;
  return kind === "command" && programsOf(commandOf(input) ?? "").some((part) => isAsking(part) || (background > 0 && READING.test(part)));
}

function isAsking(part: string): boolean {
  const [program = ""] = part.split(/\s/, 1);
  return ASKING.has(program) || ASKING_WITH[program]?.test(part) === true;
}

/** The parts of a command line, each from its program on. Only a hint: nothing is allowed or refused by it. */
function programsOf(line: string): string[] {
  return line.split(/[;&|()`\n]+/).map((part) => part.replace(BEFORE_PROGRAM, ""));
}

/** The command line of a tool that runs commands, by whatever name its field has. */
export function commandOf(input: unknown): string | null {
  if (typeof input !== "object" || input === null) return null;
  const fields = input as Readonly<Record<string, unknown>>;
  const command = fields["command"] ?? fields["cmd"] ?? fields["script"];
  if (typeof command === "string") return command;
  return Array.isArray(command) ? command.filter((word) => typeof word === "string").join(" ") : null;
}
