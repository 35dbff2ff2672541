/** Model APIs that agents reach through the gateway: where they are, what they cost, and what was used of them. */
import { z } from "zod";
import { contract } from "./contract.ts";
import { SandboxRef } from "./ids.ts";
import { ROUTES } from "./routes.ts";

/** First part of the path inside, below the gateway's port. */
export const MODEL_PATH = "model";

/** Providers whose address is known, and the agent by whose name `viv agents login` keeps the login of each. */
export const KNOWN_PROVIDERS: Readonly<Record<string, { readonly url: string; readonly agent: string }>> = {
  // What a program puts before the paths of the API: OpenAI's has the version in it, the others' have not.
  anthropic: { url: "https://api.anthropic.com", agent: "claude" },
  openai: { url: "https://api.openai.com/v1", agent: "codex" },
  gemini: { url: "https://generativelanguage.googleapis.com", agent: "gemini" },
};

const dollars = z.number().min(0).max(1_000_000);

export const ModelShape = z
  .enum(["anthropic", "openai", "gemini"])
  .describe("How it speaks: Anthropic's messages, OpenAI's chat and responses, or Gemini's generateContent.");
export type ModelShape = z.infer<typeof ModelShape>;

const Provider = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe("Its base address; known for anthropic, openai and gemini. Plain HTTP on loopback alone."),
    secret: z.string().min(1).max(64).describe("Name of the secret that is its key, see `viv agents login` and `viv secret set`."),
    shape: ModelShape.optional().describe("How it speaks; anthropic and gemini for the providers of these names, else openai."),
    cost: z
      .enum(["list", "none"])
      .optional()
      .describe("What requests cost: list by the table of prices, none for a subscription that is paid anyhow; list if left out."),
  })
  .describe("A model API.");
export type Provider = z.infer<typeof Provider>;

export const ModelsConfig = z
  .record(z.string().regex(/^[a-z][a-z0-9-]{0,31}$/), Provider)
  .default({})
  .describe("Model APIs that sandboxes reach without holding the key, by name.");
export type ModelsConfig = z.infer<typeof ModelsConfig>;

export const Price = z
  .strictObject({
    input: dollars.describe("Dollars for a million tokens sent."),
    output: dollars.describe("Dollars for a million tokens answered."),
    cacheRead: dollars.optional().describe("For a million tokens read from a cache; a tenth of input if left out."),
    cacheWrite: dollars.optional().describe("For a million tokens written to one; 1.25 times input if left out."),
  })
  .describe("What a model costs.");
export type Price = z.infer<typeof Price>;

export const PricesConfig = z
  .record(z.string().min(1).max(128), Price)
  .default({})
  .describe(
    "Prices of models whose names begin so, before the built-in ones; the longest beginning counts. A model without any costs the most that a known one does.",
  );
export type PricesConfig = z.infer<typeof PricesConfig>;

/** A model that the server itself asks. */
export const ChosenModel = z.strictObject({
  provider: z.string().min(1).max(32).describe("Name of a model API of `models`, such as `anthropic`."),
  model: z.string().min(1).max(128).describe("Its model; a small one is enough."),
});

export const BudgetsConfig = z
  .strictObject({
    sandbox: dollars.optional().describe("Dollars that one sandbox may spend on models."),
    task: dollars.optional().describe("Dollars of all sandboxes with the same label `task`, or of one experiment."),
    project: dollars.optional().describe("Dollars of all sandboxes of one project."),
    day: dollars.optional().describe("Dollars of all sandboxes on one day (UTC)."),
  })
  .prefault({})
  .describe("What may be spent on models; the next request beyond is refused.");
export type BudgetsConfig = z.infer<typeof BudgetsConfig>;

const tokens = z.number().int();

export const UsageRow = z
  .object({
    sandbox: z.string().describe("Id of the sandbox."),
    name: z.string().describe("Its name."),
    task: z.string().nullable().describe("Its task, if it has one."),
    project: z.string().describe("Path of its project."),
    day: z.string().describe("Day in UTC."),
    provider: z.string(),
    model: z.string().describe("As it was asked for."),
    requests: z.number().int().describe("Requests that were sent on."),
    inputTokens: tokens.describe("Sent, without those of a cache."),
    outputTokens: tokens.describe("Answered."),
    cacheReadTokens: tokens,
    cacheWriteTokens: tokens,
    microDollars: z.number().int().describe("Cost in millionths of a dollar, by the table of prices."),
  })
  .describe("What a sandbox used of a model on a day.")
  .meta({ id: "Usage" });
export type UsageRow = z.infer<typeof UsageRow>;

export const MODEL_CONTRACTS = {
  usage: contract(
    ROUTES.usage,
    "Tokens and cost of models",
    z.strictObject({
      sandbox: SandboxRef.optional(),
      project: z.string().max(4096).optional().describe("Only those of this project."),
      day: z
        .string()
        .regex(/^\d{4}-\d{2}-\d{2}$/, "a day is like 2030-01-31")
        .optional()
        .describe("Only this day."),
    }),
    z.object({
      usage: z.array(UsageRow),
      microDollars: z.number().int().describe("Cost of all that is listed."),
      todayMicroDollars: z.number().int().describe("Cost of everything today (UTC)."),
      budgets: z
        .object({ sandbox: dollars.optional(), task: dollars.optional(), project: dollars.optional(), day: dollars.optional() })
        .describe("What may be spent, in dollars."),
    }),
  ),
} as const;
