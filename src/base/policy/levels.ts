/** Autonomy and auto-approval levels: rules over the same engine, nothing else. */
import type { AutonomyLevel, PolicyRule, Role, YoloLevel } from "../schema/policy.ts";
import {
  BLOCKED,
  BUILDING,
  CALLING,
  DELETES_PRECIOUS,
  DELETING,
  DEPENDENCIES,
  withVerdict,
  FILES,
  GIT_READING,
  GIT_RISKY,
  GIT_SENDING,
  GIT_WORKING,
  INSTALLS,
  INTERPRETERS,
  PACKAGE_HOSTS,
  PROJECT_CONFIGURATION,
  PUBLISHING,
  READING,
  SAFE_PACKAGES,
} from "./lists.ts";

export type Rules = Readonly<Record<string, PolicyRule>>;
export interface LevelData {
  readonly title: string;
  readonly rules: Rules;
}

/** Reading is allowed at every level; requests to siblings and to Vivarium have limits of their own. */
const TOOLS: Rules = {
  "*": "ask",
  ...withVerdict("allow", ["read", "grep", "glob", "list", "ls", "lsp", "todowrite", "todoread", "task", "skill", "question"]),
  ...withVerdict("allow", ["coordinate_sibling", "request_resources", "create_task", "snapshot"]),
  promotion: { "*": "ask" },
};
const WEB_TOOLS = ["webfetch", "websearch", "codesearch"];
/** The walls close these anyway. */
const CLOSED_HOSTS: PolicyRule = { "@metadata": "deny", "@private": "deny" };
const ASKED_HOSTS: PolicyRule = { ...CLOSED_HOSTS, "@loopback": "allow", "*": "ask", ...withVerdict("allow", PACKAGE_HOSTS) };
const PUBLIC_HOSTS: PolicyRule = { ...CLOSED_HOSTS, "@loopback": "deny", "*": "allow" };

const GUIDED: Rules = {
  ...TOOLS,
  edit: "allow",
  bash: {
    "npm *": "allow",
    "pnpm *": "allow",
    "git status": "allow",
    "git diff": "allow",
    "git add *": "allow",
    "git commit *": "allow",
    "rm -rf *": "deny",
    "sudo *": "deny",
    "*": "ask",
  },
  write: "allow",
  external_directory: "deny",
  host: ASKED_HOSTS,
};

const INTELLIGENT: Rules = {
  ...TOOLS,
  edit: { "*": "allow", "src/*": "allow", ...withVerdict("ask", PROJECT_CONFIGURATION) },
  external_directory: { "*": "ask", "/tmp/*": "allow", "/var/tmp/*": "allow" },
  bash: {
    "*": "ask",
    ...withVerdict("allow", [...READING, ...FILES, ...BUILDING, ...GIT_READING, ...GIT_WORKING]),
    ...withVerdict("ask", [...DELETING, ...GIT_RISKY, ...PUBLISHING, ...CALLING, ...DEPENDENCIES]),
    ...withVerdict("allow", INSTALLS),
    ...withVerdict("deny", BLOCKED),
  },
  delete: { "*": "ask", ...DELETES_PRECIOUS },
  host: ASKED_HOSTS,
};

const FULL: Rules = {
  ...TOOLS,
  ...withVerdict("allow", [...WEB_TOOLS, "roll_back"]),
  edit: "allow",
  external_directory: { "*": "ask", "/tmp/*": "allow", "/var/tmp/*": "allow" },
  bash: {
    "*": "ask",
    ...withVerdict("allow", [...READING, ...FILES, ...DELETING, ...BUILDING, ...INTERPRETERS, ...CALLING, "git *"]),
    ...withVerdict("ask", [...GIT_SENDING, ...PUBLISHING]),
    ...withVerdict("deny", BLOCKED),
  },
  delete: { "*": "allow", ...DELETES_PRECIOUS },
  package: SAFE_PACKAGES,
  host: PUBLIC_HOSTS,
};

const YOLO_FILES: Rules = {
  ...TOOLS,
  edit: "allow",
  external_directory: { "*": "ask", "/tmp/*": "allow", "/var/tmp/*": "allow" },
  bash: { "*": "ask", ...withVerdict("allow", [...READING, ...FILES, ...DELETING]), ...withVerdict("deny", BLOCKED) },
  delete: { "*": "allow", ...DELETES_PRECIOUS },
  host: { ...CLOSED_HOSTS, "@loopback": "deny", "*": "ask" },
};

const YOLO_NETWORK: Rules = {
  ...YOLO_FILES,
  ...withVerdict("allow", WEB_TOOLS),
  bash: {
    "*": "ask",
    ...withVerdict("allow", [...READING, ...FILES, ...DELETING, ...CALLING, "git clone *", "git fetch *", "git pull *"]),
    ...withVerdict("deny", BLOCKED),
  },
  host: PUBLIC_HOSTS,
};

const YOLO_LIMITED: Rules = {
  ...TOOLS,
  "*": "allow",
  ...withVerdict("allow", WEB_TOOLS),
  edit: "allow",
  external_directory: "allow",
  bash: {
    "*": "allow",
    ...withVerdict("allow", [...READING, ...FILES, ...DELETING, ...BUILDING, ...INTERPRETERS, ...CALLING]),
    ...withVerdict("deny", BLOCKED),
  },
  delete: { "*": "allow", ...DELETES_PRECIOUS },
  package: SAFE_PACKAGES,
  host: PUBLIC_HOSTS,
};

const YOLO_ALL: Rules = {
  ...TOOLS,
  "*": "allow",
  edit: "allow",
  external_directory: "allow",
  bash: "allow",
  host: { ...CLOSED_HOSTS, "@loopback": "allow", "*": "allow" },
};

export const LEVELS: Readonly<Record<AutonomyLevel, LevelData>> = {
  1: { title: "level 1 (guided)", rules: GUIDED },
  2: { title: "level 2 (intelligent)", rules: INTELLIGENT },
  3: { title: "level 3 (full)", rules: FULL },
};

export const YOLO: Readonly<Record<YoloLevel, LevelData>> = {
  1: { title: "yolo 1 (files)", rules: YOLO_FILES },
  2: { title: "yolo 2 (files and network)", rules: YOLO_NETWORK },
  3: { title: "yolo 3 (all but privileged)", rules: YOLO_LIMITED },
  4: { title: "yolo 4 (all inside)", rules: YOLO_ALL },
};

export interface RoleData {
  readonly description: string;
  /** null: as many as the task takes. A number for every project would end ordinary tasks, so only a config sets one. */
  readonly maxSteps: number | null;
  /** false takes a tool away; a tool that is not named has the verdict of the level. */
  readonly tools: Readonly<Record<string, boolean>>;
  /** Whether it has tools that are not named. */
  readonly others: boolean;
}

export const ROLES: Readonly<Record<Role, RoleData>> = {
  worker: { description: "Autonomous code writer", maxSteps: null, tools: { write: true, edit: true, bash: true }, others: true },
  reviewer: {
    description: "Code review agent (read-only)",
    maxSteps: null,
    tools: { read: true, grep: true, glob: true, list: true, lsp: true, write: false, edit: false, bash: false, promotion: false },
    others: false,
  },
  coordinator: {
    description: "Orchestrates multi-sandbox workflows",
    maxSteps: null,
    tools: {
      coordinate_sibling: true,
      request_resources: true,
      create_task: true,
      read: true,
      grep: true,
      glob: true,
      list: true,
      write: false,
      edit: false,
      bash: false,
    },
    others: false,
  },
};
