/** What an operation is made of: where it is found, what it takes and what it answers. */
import { z } from "zod";
import type { Route } from "./routes.ts";
import { textual } from "./units.ts";

export interface Contract<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodType = z.ZodType> extends Route {
  readonly summary: string;
  readonly input: Input;
  readonly output: Output;
  /** HTTP status of success. */
  readonly status: 200 | 201;
}

export function contract<Input extends z.ZodObject, Output extends z.ZodType>(
  route: Route,
  summary: string,
  input: Input,
  output: Output,
  status: 200 | 201 = 200,
): Contract<Input, Output> {
  return { ...route, summary, input, output, status };
}

export const none = z.strictObject({});
export const Done = z.object({ ok: z.literal(true).describe("Always true: failures are errors.") });
export const flag = z.union([z.boolean(), z.enum(["true", "false", "1", "0"]).transform((text) => text === "true" || text === "1")]);
/** A whole number of a query. */
export const count = (least: number, most?: number) => {
  const bounds = most === undefined ? `a whole number from ${least} on` : `a whole number from ${least} to ${most}`;
  return textual(most === undefined ? z.int(bounds).min(least, bounds) : z.int(bounds).min(least, bounds).max(most, bounds));
};
export const ProjectPath = z.string().startsWith("/").max(4096).describe("Absolute path of a folder in the project, or of the project.");
export const CallerFolder = z
  .string()
  .min(1)
  .max(4096)
  .refine((path) => !path.includes("\0"), "a path has no NUL")
  .optional()
  .describe(
    "Folder of the project that the lines given here run in, absolute or relative to the project; the project's own if left out. Lines of the config always run there.",
  );
export const CallerEnvironment = z
  .record(z.string().regex(/^[^=\0]+$/), z.string())
  .optional()
  .describe("Environment of the caller; names and values that look secret are left out.");
