/** The commands by name, in the order of help. A command's module is loaded when it runs: start-up time matters. */
import type { CommandDeclaration } from "./command.ts";

type Load = () => Promise<{ readonly default: CommandDeclaration }>;

export const GROUPS = [
  {
    title: "Sandboxes",
    commands: {
      create: () => import("./commands/create.ts"),
      run: () => import("./commands/run.ts"),
      ls: () => import("./commands/ls.ts"),
      inspect: () => import("./commands/inspect.ts"),
      pause: () => import("./commands/pause.ts"),
      resume: () => import("./commands/resume.ts"),
      start: () => import("./commands/start.ts"),
      stop: () => import("./commands/stop.ts"),
      network: () => import("./commands/network.ts"),
      "network allow-private": () => import("./commands/network-allow-private.ts"),
      extend: () => import("./commands/extend.ts"),
      limits: () => import("./commands/limits.ts"),
      rm: () => import("./commands/rm.ts"),
      prune: () => import("./commands/prune.ts"),
    },
  },
  {
    title: "Work inside",
    commands: {
      code: () => import("./commands/code.ts"),
      jobs: () => import("./commands/jobs/list.ts"),
      "jobs show": () => import("./commands/jobs/show.ts"),
      "jobs cancel": () => import("./commands/jobs/cancel.ts"),
      exec: () => import("./commands/exec.ts"),
      shell: () => import("./commands/shell.ts"),
      ps: () => import("./commands/ps.ts"),
      logs: () => import("./commands/logs.ts"),
      attach: () => import("./commands/attach.ts"),
      kill: () => import("./commands/kill.ts"),
      port: () => import("./commands/port.ts"),
      desktop: () => import("./commands/desktop.ts"),
      python: () => import("./commands/python.ts"),
      notebook: () => import("./commands/notebook.ts"),
    },
  },
  {
    title: "Files and states",
    commands: {
      diff: () => import("./commands/diff.ts"),
      cp: () => import("./commands/cp.ts"),
      "files ls": () => import("./commands/files/ls.ts"),
      "files cat": () => import("./commands/files/cat.ts"),
      "files put": () => import("./commands/files/put.ts"),
      "files mv": () => import("./commands/files/mv.ts"),
      "files rm": () => import("./commands/files/rm.ts"),
      "files mkdir": () => import("./commands/files/mkdir.ts"),
      "files stat": () => import("./commands/files/stat.ts"),
      "files watch": () => import("./commands/files/watch.ts"),
      snapshot: () => import("./commands/snapshot.ts"),
      snapshots: () => import("./commands/snapshots.ts"),
      refresh: () => import("./commands/refresh.ts"),
      rollback: () => import("./commands/rollback.ts"),
      fork: () => import("./commands/fork.ts"),
    },
  },
  {
    title: "Agents",
    commands: {
      task: () => import("./commands/task.ts"),
      tasks: () => import("./commands/tasks.ts"),
      say: () => import("./commands/say.ts"),
      interrupt: () => import("./commands/interrupt.ts"),
      context: () => import("./commands/context.ts"),
      agents: () => import("./commands/agents/list.ts"),
      "agents install": () => import("./commands/agents/install.ts"),
      "agents login": () => import("./commands/agents/login.ts"),
      "agents logout": () => import("./commands/agents/logout.ts"),
    },
  },
  {
    title: "Chat clients",
    commands: {
      mcp: () => import("./commands/mcp/serve.ts"),
      "mcp install": () => import("./commands/mcp/install.ts"),
    },
  },
  {
    title: "Experiments and promotion",
    commands: {
      try: () => import("./commands/try.ts"),
      experiments: () => import("./commands/experiments.ts"),
      experiment: () => import("./commands/experiment.ts"),
      promote: () => import("./commands/promote.ts"),
      promotions: () => import("./commands/promotions.ts"),
      undo: () => import("./commands/undo.ts"),
      approvals: () => import("./commands/approvals.ts"),
      approve: () => import("./commands/approve.ts"),
      deny: () => import("./commands/deny.ts"),
    },
  },
  {
    title: "Automations",
    commands: {
      "automation add": () => import("./commands/automation/add.ts"),
      "automation ls": () => import("./commands/automation/ls.ts"),
      "automation show": () => import("./commands/automation/show.ts"),
      "automation run": () => import("./commands/automation/run.ts"),
      "automation test": () => import("./commands/automation/test.ts"),
      "automation pause": () => import("./commands/automation/pause.ts"),
      "automation resume": () => import("./commands/automation/resume.ts"),
      "automation history": () => import("./commands/automation/history.ts"),
      "automation secret": () => import("./commands/automation/secret.ts"),
      "automation rm": () => import("./commands/automation/rm.ts"),
      report: () => import("./commands/report.ts"),
    },
  },
  {
    title: "Policy of agents",
    commands: {
      "policy explain": () => import("./commands/policy/explain.ts"),
      "policy test": () => import("./commands/policy/test.ts"),
      "policy triage": () => import("./commands/policy/triage.ts"),
      "policy agents": () => import("./commands/policy/agents.ts"),
      "policy import": () => import("./commands/policy/import.ts"),
      "policy show": () => import("./commands/policy/show.ts"),
      "policy set": () => import("./commands/policy/set.ts"),
      "policy rules": () => import("./commands/policy/rules.ts"),
      "policy forget": () => import("./commands/policy/forget.ts"),
    },
  },
  {
    title: "Secrets and models",
    commands: {
      "secret set": () => import("./commands/secret/set.ts"),
      "secret import": () => import("./commands/secret/import.ts"),
      "secret ls": () => import("./commands/secret/ls.ts"),
      "secret rm": () => import("./commands/secret/rm.ts"),
      effects: () => import("./commands/effects.ts"),
      usage: () => import("./commands/usage.ts"),
    },
  },
  {
    title: "Server and machine",
    commands: {
      up: () => import("./commands/up.ts"),
      down: () => import("./commands/down.ts"),
      open: () => import("./commands/open.ts"),
      notify: () => import("./commands/notify.ts"),
      status: () => import("./commands/status.ts"),
      doctor: () => import("./commands/doctor.ts"),
      trust: () => import("./commands/trust.ts"),
      audit: () => import("./commands/audit.ts"),
      events: () => import("./commands/events.ts"),
      completion: () => import("./commands/completion.ts"),
      version: () => import("./commands/version.ts"),
      help: () => import("./commands/help.ts"),
    },
  },
] as const satisfies readonly { readonly title: string; readonly commands: Readonly<Record<string, Load>> }[];

const COMMANDS: Readonly<Record<string, Load>> = Object.assign({}, ...GROUPS.map((group) => group.commands));

export function commandNames(): string[] {
  return Object.keys(COMMANDS);
}

export async function loadCommand(name: string): Promise<CommandDeclaration | undefined> {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return (await load?.())?.default;
}

export async function loadAll(): Promise<CommandDeclaration[]> {
  return Promise.all(Object.values(COMMANDS).map(async (load) => (await load()).default));
}
