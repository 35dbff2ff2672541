/** Tools for chat clients (MCP): what each takes. Their words are read by a model at every turn, so they are few. */
import { z } from "zod";
import { ShellLine } from "./check.ts";
import { DesktopAction } from "./desktop.ts";
import { PromotionId } from "./ids.ts";
import { LIMITS } from "./limits.ts";
import { ContextName } from "./notebook.ts";
import { DEFAULT_YOLO, YoloLevel } from "./policy.ts";

/** Agents as chat clients name them. */
export const TASK_AGENTS = { "claude-code": "claude", opencode: "opencode" } as const;
const AGENT_NAMES = Object.keys(TASK_AGENTS) as [keyof typeof TASK_AGENTS, ...(keyof typeof TASK_AGENTS)[]];
const MOST_WAYS = 16;
const TASK_TIMEOUT_SECONDS = { least: 60, usual: 600, most: 1800 };

/** Checked, but not part of what models read: patterns and lengths tell them nothing that the words don't. */
const like = (schema: z.ZodType<string>, message: string) => z.string().refine((text) => schema.safeParse(text).success, message);

/** What a call is about: a run, an experiment, a sandbox, or a command or a piece of code in one. */
const SessionId = like(
  z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,62})(?:\/(?:cmd[0-9a-z]{26}|[0-9a-f-]{36}))?$/),
  "this is no session_id: call list to see which there are",
).describe("From execute_task, clone, run or try");

const OwnPlace = SessionId.optional().describe("A new, empty workspace if left out");
const Context = like(ContextName, "a context has a name of lower-case letters, digits and hyphens").describe("Own variables each");

/** Flat, which models read with less: the action itself says which fields it takes. */
const ScreenAction = z
  .strictObject({
    do: z.enum(["move", "click", "drag", "scroll", "type", "key", "wait"]),
    x: z.number().optional(),
    y: z.number().optional(),
    toX: z.number().optional(),
    toY: z.number().optional(),
    button: z.enum(["left", "middle", "right"]).optional(),
    count: z.number().optional().describe("2: double click"),
    down: z.number().optional().describe("Scroll steps"),
    right: z.number().optional(),
    text: z.string().optional(),
    keys: z.string().optional().describe("Such as ctrl+s, Return"),
    timeoutMs: z.number().optional().describe("Of wait, for a change"),
  })
  .transform((given, context) => {
    const action = DesktopAction.safeParse(given);
    if (action.success) return action.data;
    const [issue] = action.error.issues;
    context.addIssue({ code: "custom", message: `${given.do}: ${issue?.path.join(".") ?? ""} ${issue?.message ?? "is not right"}` });
    return z.NEVER;
  });

const Line = like(ShellLine, "a command has 1 to 65,536 characters, and no NUL among them");
const Words = like(z.string().trim().min(1).max(LIMITS.runMessageCharacters), `a task has 1 to ${LIMITS.runMessageCharacters} characters`);

const Project = like(z.string().startsWith("/").max(4096), "a project is an absolute path: call list to see which there are").optional();

export const GivenFile = z
  .strictObject({
    path: z.string().describe("Relative"),
    content: z.string().optional().describe("Base64"),
    text: z.string().optional().describe("Plain text instead"),
  })
  .refine(({ content, text }) => (content === undefined) !== (text === undefined), "a file has either content or text");
export type GivenFile = z.infer<typeof GivenFile>;

export const TOOLS = {
  execute_task: {
    title: "Let an agent do a task",
    description:
      "An AI agent does a task by itself in a safe, empty /workspace: files, data, code, web, packages. Nothing of this computer can be changed by it. If status is running, call wait.",
    input: z.strictObject({
      task_description: Words.describe("What to do, in plain words"),
      agent: z.enum(AGENT_NAMES).default("claude-code"),
      files: z.array(GivenFile).default([]).describe("Put into the workspace"),
      timeout: z
        .number()
        .int()
        .min(TASK_TIMEOUT_SECONDS.least)
        .max(TASK_TIMEOUT_SECONDS.most)
        .default(TASK_TIMEOUT_SECONDS.usual)
        .describe("Seconds"),
      // Left out, the project's own level holds; without a project that is the default that models read.
      yolo_level: YoloLevel.optional().meta({
        description: "Allowed without asking: 1 files, 2 and network, 3 all but privileged, 4 all",
        default: DEFAULT_YOLO,
      }),
      project: Project.describe("Work on a clone of this folder instead; see list"),
    }),
    reads: false,
  },
  get_sandbox_status: {
    title: "See how work stands",
    description: "How a task, experiment, command or sandbox stands.",
    input: z.strictObject({ session_id: SessionId }),
    reads: true,
  },
  download_files: {
    title: "Get files",
    description: "Files that were made. save: true puts them into a new folder of the person's Downloads and says where.",
    input: z.strictObject({
      session_id: SessionId,
      paths: z.array(z.string()).optional().describe("All that were made if left out"),
      save: z.boolean().default(false),
    }),
    reads: false,
  },
  cleanup_sandbox: {
    title: "Throw away",
    description: "Ends the work and removes its sandbox and files for good.",
    input: z.strictObject({ session_id: SessionId }),
    reads: false,
  },
  clone: {
    title: "Clone a project",
    description: "A safe clone of a project and its machine, to run commands in.",
    input: z.strictObject({ project: Project.describe("See list; the only one if left out") }),
    reads: false,
  },
  run: {
    title: "Run a command",
    description: "Runs a shell line in a sandbox.",
    input: z.strictObject({
      session_id: SessionId,
      command: Line,
      timeout: z.number().int().min(1).max(86_400).default(600).describe("Seconds"),
    }),
    reads: false,
  },
  wait: {
    title: "Wait",
    description: "Waits for running work and gives its result. Still running: call again.",
    input: z.strictObject({ session_id: SessionId }),
    reads: true,
  },
  diff: {
    title: "See changes",
    description: "What was changed, as a patch.",
    input: z.strictObject({ session_id: SessionId }),
    reads: true,
  },
  try: {
    title: "Try several ways",
    description: "Tries several ways in clones of a project at once; checks prove which works; the winner can be promoted.",
    input: z
      .strictObject({
        task: Words.optional().describe("For agents"),
        agents: z
          .array(z.string())
          .refine(({ length }) => length > 0 && length <= MOST_WAYS, `1 to ${MOST_WAYS} agents`)
          .optional()
          .describe("Who try the task"),
        commands: z
          .array(Line)
          .refine(({ length }) => length > 0 && length <= MOST_WAYS, `1 to ${MOST_WAYS} commands`)
          .optional()
          .describe("Shell lines instead of a task"),
        checks: z.array(Line).optional().describe("Shell lines; exit 0 proves"),
        project: Project,
      })
      .refine(({ task, commands }) => (task === undefined) !== (commands === undefined), "give either a task or commands"),
    reads: false,
  },
  promote: {
    title: "Bring into the project",
    description: "Brings a change into the real project. The person is asked; you can't answer for them.",
    input: z.strictObject({ session_id: SessionId, message: z.string().optional() }),
    reads: false,
  },
  undo: {
    title: "Take back",
    description: "Takes a promotion back. The person is asked.",
    input: z.strictObject({
      promotion: like(PromotionId, "this is no id of a promotion: call list to see which there are").describe("From promote or list"),
    }),
    reads: false,
  },
  list: {
    title: "List",
    description: "Projects, sandboxes, tasks, experiments, promotions and questions.",
    input: z.strictObject({}),
    reads: true,
  },
  use_desktop: {
    title: "Use a screen",
    description:
      "Uses the screen of a sandbox, which is started if it has none: actions in order, then a picture. Programs that run starts show there.",
    input: z.strictObject({
      session_id: OwnPlace,
      actions: z
        .array(ScreenAction)
        .refine(({ length }) => length <= LIMITS.maxDesktopActions, `at most ${LIMITS.maxDesktopActions} actions`)
        .default([]),
      browser: like(z.string().max(2048), "an address has at most 2,048 characters").optional().describe("Opens Chromium at this address"),
      close: z.boolean().default(false).describe("Ends the screen"),
    }),
    reads: false,
  },
  screenshot: {
    title: "Look at a screen",
    description: "A picture of the screen of a sandbox, and its windows.",
    input: z.strictObject({ session_id: SessionId }),
    reads: true,
  },
  python: {
    title: "Run Python",
    description:
      "Runs Python as in a notebook: variables stay for the next call, charts come back as pictures. If status is running, call wait.",
    input: z.strictObject({
      session_id: OwnPlace,
      code: like(z.string().min(1).max(LIMITS.maxCodeCharacters), `code has 1 to ${LIMITS.maxCodeCharacters} characters`),
      context: Context.default("main"),
      timeout: z.number().int().min(1).max(86_400).optional().describe("Seconds; none if left out"),
    }),
    reads: false,
  },
  python_context: {
    title: "Interrupt or restart Python",
    description: "interrupt ends what runs and keeps the variables, restart begins anew, list tells which contexts there are.",
    input: z.strictObject({
      session_id: SessionId,
      do: z.enum(["interrupt", "restart", "list"]),
      context: Context.default("main"),
    }),
    reads: false,
  },
} as const;

export type ToolName = keyof typeof TOOLS;
export const TOOL_NAMES = Object.keys(TOOLS) as readonly ToolName[];

const DESKTOP_TOOLS: readonly ToolName[] = ["use_desktop", "screenshot"];
const NOTEBOOK_TOOLS: readonly ToolName[] = ["python", "python_context"];

/** Tools that are chosen together. What is not chosen takes nothing of a model's context. */
export const TOOL_SETS: Readonly<Record<string, readonly ToolName[]>> = {
  default: TOOL_NAMES.filter((name) => ![...DESKTOP_TOOLS, ...NOTEBOOK_TOOLS].includes(name)),
  desktop: DESKTOP_TOOLS,
  notebook: NOTEBOOK_TOOLS,
};
export const DEFAULT_TOOLS: readonly ToolName[] = TOOL_SETS["default"] ?? [];

/** Names of tools and of sets, with commas between; the first that is neither, where there is one. */
export function chosenTools(names: string): { readonly tools: readonly ToolName[]; readonly unknown?: string } {
  const wanted = names.split(",").map((name) => name.trim());
  const unknown = wanted.find((name) => !Object.hasOwn(TOOLS, name) && !Object.hasOwn(TOOL_SETS, name));
  if (unknown !== undefined) return { tools: [], unknown };
  const chosen = new Set(wanted.flatMap((name): readonly string[] => TOOL_SETS[name] ?? [name]));
  return { tools: TOOL_NAMES.filter((name) => chosen.has(name)) };
}
export type ToolInput<Name extends ToolName> = z.output<(typeof TOOLS)[Name]["input"]>;

/** Header in which a client over HTTP sends the approver's token: without it, what its person answers does not count. */
export const APPROVER_HEADER = "viv-approver";
/** Where chat clients speak to the server over HTTP. */
export const MCP_PATH = "/mcp";
