// Made from the contracts by scripts/sdk-types.ts.
import type { AddedRule, PolicyVerdict } from "./policy.ts";

/** Input of: What the policy says to an action, part by part. */
export interface ExplainPolicyInput {
  /** A folder in the project whose rules hold; none if left out. */
  project?: string | undefined;
  /** The sandbox whose policy is meant, instead of a project, a level and a role. */
  sandbox?: string | undefined;
  /** Autonomy: 1 guided, 2 intelligent, 3 full. */
  level?: 1 | 2 | 3 | undefined;
  /** Auto-approval: 1 files, 2 and network, 3 all but privileged, 4 all. */
  yolo?: 1 | 2 | 3 | 4 | undefined;
  /** What an agent is there for. */
  role?: "worker" | "reviewer" | "coordinator" | undefined;
  /** What an agent wants to do. */
  action: {
    kind: "command";
    /** A shell line, or words. */
    command: string | string[];
  } | {
    kind: "tool";
    tool: string;
    /** What it works on: a path, a command, an address. */
    argument?: string | undefined;
  } | {
    kind: "path";
    path: string;
    access: "read" | "write" | "delete";
  } | {
    kind: "host";
    host: string;
    port?: number | undefined;
  } | {
    kind: "resources";
    /** CPU cores in all. */
    cpus?: number | undefined;
    /** Memory in all. */
    memoryBytes?: number | undefined;
  } | {
    kind: "promotion";
    /** Stage it goes to. */
    stage: string;
  };
}

/** Answer of: What the policy says to an action, part by part. */
export interface ExplainPolicyOutput {
  verdict: PolicyVerdict;
  /** The rule that decided, such as `bash: npm *`. */
  rule: string;
  /** Why, in a sentence. */
  reason: string;
  /** What the action is made of; the strictest decides. */
  parts: ({
    /** This part of the action, as it runs. */
    command: string;
    verdict: PolicyVerdict;
    /** The rule that decided, such as `bash: npm *`. */
    rule: string;
    /** Why, in a sentence. */
    reason: string;
  })[];
}

/** Input of: Run the examples kept beside the rules. */
export interface TestPolicyInput {
  /** Absolute path of a folder in the project, or of the project. */
  project: string;
}

/** Answer of: Run the examples kept beside the rules. */
export interface TestPolicyOutput {
  passed: number;
  failures: ({
    rule: string;
    example: string;
    expected: "match" | "not_match";
    reason: string;
  })[];
}

/** Input of: Is an action safe enough to do, worth a sandbox, or only to be proposed?. */
export interface TriageActionInput {
  /** A folder in the project whose rules hold; none if left out. */
  project?: string | undefined;
  /** The sandbox whose policy is meant, instead of a project, a level and a role. */
  sandbox?: string | undefined;
  /** Autonomy: 1 guided, 2 intelligent, 3 full. */
  level?: 1 | 2 | 3 | undefined;
  /** Auto-approval: 1 files, 2 and network, 3 all but privileged, 4 all. */
  yolo?: 1 | 2 | 3 | 4 | undefined;
  /** What an agent is there for. */
  role?: "worker" | "reviewer" | "coordinator" | undefined;
  /** What an agent wants to do. */
  action: {
    kind: "command";
    /** A shell line, or words. */
    command: string | string[];
  } | {
    kind: "tool";
    tool: string;
    /** What it works on: a path, a command, an address. */
    argument?: string | undefined;
  } | {
    kind: "path";
    path: string;
    access: "read" | "write" | "delete";
  } | {
    kind: "host";
    host: string;
    port?: number | undefined;
  } | {
    kind: "resources";
    /** CPU cores in all. */
    cpus?: number | undefined;
    /** Memory in all. */
    memoryBytes?: number | undefined;
  } | {
    kind: "promotion";
    /** Stage it goes to. */
    stage: string;
  };
}

/** Answer of: Is an action safe enough to do, worth a sandbox, or only to be proposed?. */
export interface TriageActionOutput {
  /** Do it at once, try it in a sandbox, or only propose it. */
  way: "direct" | "sandbox" | "propose";
  /** Why, a sentence each. */
  reasons: string[];
  cost: {
    /** Time a sandbox would add, about. */
    seconds: number;
    /** Memory it would take, about. */
    memoryMib: number;
    /** Disk space it would take, about. */
    diskMib: number;
  };
  decision: {
    verdict: PolicyVerdict;
    /** The rule that decided, such as `bash: npm *`. */
    rule: string;
    /** Why, in a sentence. */
    reason: string;
    /** What the action is made of; the strictest decides. */
    parts: ({
      /** This part of the action, as it runs. */
      command: string;
      verdict: PolicyVerdict;
      /** The rule that decided, such as `bash: npm *`. */
      rule: string;
      /** Why, in a sentence. */
      reason: string;
    })[];
  };
}

/** Input of: Text for AGENTS.md from the policy in effect. */
export interface AgentInstructionsInput {
  /** A folder in the project whose rules hold; none if left out. */
  project?: string | undefined;
  /** The sandbox whose policy is meant, instead of a project, a level and a role. */
  sandbox?: string | undefined;
  /** Autonomy: 1 guided, 2 intelligent, 3 full. */
  level?: 1 | 2 | 3 | undefined;
  /** Auto-approval: 1 files, 2 and network, 3 all but privileged, 4 all. */
  yolo?: 1 | 2 | 3 | 4 | undefined;
  /** What an agent is there for. */
  role?: "worker" | "reviewer" | "coordinator" | undefined;
}

/** Answer of: Text for AGENTS.md from the policy in effect. */
export interface AgentInstructionsOutput {
  text: string;
}

/** Input of: Convert the permission block of an opencode.json. */
export interface ImportPolicyInput {
  /** The file's text; comments allowed. */
  text: string;
}

/** Answer of: Convert the permission block of an opencode.json. */
export interface ImportPolicyOutput {
  /** Rules for agents: by tool (`bash`, `edit`, `write`, `read`, `external_directory`, ...), and by `path`, `host`, `delete`, `package`, `promotion`. An allow that the level would ask or deny widens. */
  policy: {
    /** Autonomy level of this project's agents. */
    level?: 1 | 2 | 3 | undefined;
    /** Auto-approval level instead. */
    yolo?: 1 | 2 | 3 | 4 | undefined;
    /** Limits of roles, beside the defaults. */
    roles?: { [name: string]: {
      /** Tool calls that a run in this role may make, unless the person who started it gave another number. */
      maxSteps?: number | undefined;
      /** Tools it has; false takes one away. */
      tools?: { [name: string]: boolean } | undefined;
    } } | undefined;
    /** What a sandbox may ask for at run time and gets without a person; `limits` if left out, or what a person gave it. */
    ceiling?: {
      /** CPU cores. */
      cpus?: number | undefined;
      /** Memory. */
      memory?: unknown;
    } | undefined;
    /** Rules only make a verdict stricter; always so until the config is trusted. */
    tightenOnly?: boolean | undefined;
    /** What rules must and must not match, by tool and pattern, for `viv policy test`. */
    examples?: { [name: string]: { [name: string]: {
      /** What the rule must match. */
      match: string[];
      /** What it must not match. */
      not_match: string[];
    } } } | undefined;
  };
  warnings: string[];
}

/** Input of: Rules that people added by answering `always`. */
export interface ListRulesInput {
  /** Absolute path of a folder in the project, or of the project. */
  project?: string | undefined;
}

/** Answer of: Rules that people added by answering `always`. */
export interface ListRulesOutput {
  rules: AddedRule[];
}

/** Input of: Take such a rule back: it is asked again. */
export interface ForgetRuleInput {
  /** Id of a question for a person. */
  rule: string;
}

/** Input of: Decide an action of an agent: recorded before it is answered, asked about where the policy says so. */
export interface DecideActionInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** What an agent wants to do. */
  action: {
    kind: "command";
    /** A shell line, or words. */
    command: string | string[];
  } | {
    kind: "tool";
    tool: string;
    /** What it works on: a path, a command, an address. */
    argument?: string | undefined;
  } | {
    kind: "path";
    path: string;
    access: "read" | "write" | "delete";
  } | {
    kind: "host";
    host: string;
    port?: number | undefined;
  } | {
    kind: "resources";
    /** CPU cores in all. */
    cpus?: number | undefined;
    /** Memory in all. */
    memoryBytes?: number | undefined;
  } | {
    kind: "promotion";
    /** Stage it goes to. */
    stage: string;
  };
  /** Seconds to wait for a person, where one is asked. */
  wait?: number | undefined;
  /** Why, in the agent's own words, for the person who may be asked. */
  reason?: string | undefined;
}

/** Input of: What is enforced for agents in a sandbox. */
export interface InspectPolicyInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Change level and role of a sandbox's agents, as a person; holds from the next action on. */
export interface SetPolicyInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Autonomy: 1 guided, 2 intelligent, 3 full. */
  level?: 1 | 2 | 3 | undefined;
  /** Auto-approval: 1 files, 2 and network, 3 all but privileged, 4 all. */
  yolo?: 1 | 2 | 3 | 4 | undefined;
  /** What an agent is there for. */
  role?: "worker" | "reviewer" | "coordinator" | undefined;
  /** The approver's token, which the command line reads on a terminal alone. */
  approver: string;
}

/** What agents in a sandbox may do. With neither level nor yolo the project's trusted config says it, else it is yolo 3. */
export interface SetPolicyOutput {
  level: 1 | 2 | 3 | null;
  yolo: 1 | 2 | 3 | 4 | null;
  /** What an agent is there for. */
  role: "worker" | "reviewer" | "coordinator";
}
