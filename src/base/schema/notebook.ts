/** Code that is run piece by piece in a sandbox, with what the pieces before left: contexts, executions and their outputs. */
import { z } from "zod";
import { contract, Done } from "./contract.ts";
import { Duration } from "./config.ts";
import { SandboxRef } from "./ids.ts";
import { LIMITS } from "./limits.ts";
import { ROUTES } from "./routes.ts";

/** Name of the service that Jupyter runs as. No service of a config can have it. */
export const NOTEBOOK_SERVICE = "viv:notebook";

export const ContextName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "a name is lower-case letters, digits and hyphens")
  .describe("Name of a context: its variables are its own.");

export const ExecutionId = z.uuid("an execution has a UUID").describe("Id of an execution.");

export const CodeContext = z
  .object({
    name: z.string().describe("Name."),
    language: z.string().describe("Name of its kernel, such as python3."),
    state: z.string().describe("As Jupyter tells it: starting, idle, busy, dead."),
  })
  .describe("A place where code leaves its variables.")
  .meta({ id: "CodeContext" });
export type CodeContext = z.infer<typeof CodeContext>;

const CodeForms = z
  .record(z.string(), z.json())
  .describe("The same thing in several forms, by MIME type. Pictures are base64.")
  .meta({ id: "CodeForms" });

/** One output, in the order in which they came. */
export const CodeOutput = z
  .discriminatedUnion("kind", [
    z.object({ kind: z.enum(["stdout", "stderr"]), text: z.string().describe("What was printed.") }),
    z.object({
      kind: z.enum(["result", "display"]),
      data: CodeForms,
    }),
    z.object({
      kind: z.literal("error"),
      name: z.string().describe("Class of the error."),
      value: z.string().describe("What it says."),
      traceback: z.string().describe("Where it happened, without colours."),
    }),
  ])
  .describe(
    "Something that code printed, showed or failed with. It comes from the sandbox: HTML in it is to be shown in a frame of its own.",
  )
  .meta({ id: "CodeOutput" });
export type CodeOutput = z.infer<typeof CodeOutput>;

export const Execution = z
  .object({
    id: z.string().describe("Id."),
    sandbox: z.string().describe("Id of its sandbox."),
    context: z.string().describe("Name of its context."),
    state: z.enum(["running", "done", "failed", "interrupted"]).describe("failed: it raised an error, or its kernel ended."),
    reason: z.string().nullable().describe("Why it failed, where it was no error of the code."),
    count: z.number().int().nullable().describe("How many pieces the context has run, this one included."),
    outputs: z.array(CodeOutput).describe("Outputs so far, in order; neighbours of one stream are joined."),
    droppedBytes: z.number().int().describe("Bytes of outputs beyond the limit, which were not kept."),
    startedAt: z.string().describe("ISO time."),
    endedAt: z.string().nullable().describe("ISO time."),
  })
  .describe("One piece of code that runs or has run.")
  .meta({ id: "CodeExecution" });
export type Execution = z.infer<typeof Execution>;

/** What is told of an execution while it runs. */
export const ExecutionEvent = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("output"), output: CodeOutput }),
    z.object({ type: z.literal("ended"), execution: Execution.omit({ outputs: true }) }),
  ])
  .describe("An output, or the end.");
export type ExecutionEvent = z.infer<typeof ExecutionEvent>;

const ofSandbox = z.strictObject({ sandbox: SandboxRef });
const ofContext = ofSandbox.extend({ context: ContextName });

export const NOTEBOOK_CONTRACTS = {
  executeCode: contract(
    ROUTES.executeCode,
    "Run code in a context, which is made if it is not there",
    ofContext.extend({
      code: z.string().min(1).max(LIMITS.maxCodeCharacters).describe("The code."),
      background: z.boolean().default(false).describe("Answer at once, while it runs."),
      timeout: Duration.optional().describe("Interrupt it after this time; never if left out."),
    }),
    Execution,
    201,
  ),
  inspectExecution: contract(ROUTES.inspectExecution, "One execution", ofSandbox.extend({ execution: ExecutionId }), Execution),
  listContexts: contract(ROUTES.listContexts, "Contexts of a sandbox", ofSandbox, z.object({ contexts: z.array(CodeContext) })),
  interruptContext: contract(ROUTES.interruptContext, "End what runs in a context; its variables stay", ofContext, Done),
  restartContext: contract(ROUTES.restartContext, "Begin a context anew, without its variables", ofContext, Done),
  removeContext: contract(ROUTES.removeContext, "End a context", ofContext, Done),
};
