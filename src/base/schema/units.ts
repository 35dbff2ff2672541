/** Numbers, sizes and durations as people and queries write them. */
import { z } from "zod";
import { DURATION, durationInMs, SIZE, sizeInBytes, wholeNumber } from "./numbers.ts";

/** "512m", "4g", or a number of bytes. */
export const ByteSize = z
  .union([z.number().int().min(0), z.string().regex(SIZE, "a size is a number with k, m, g or t")])
  .transform((size): number => (typeof size === "number" ? size : (sizeInBytes(size) ?? 0)))
  .describe("A size: bytes, or a number with k, m, g or t.");

/** "90s", "10m", "2h", or a number of milliseconds. */
export const Duration = z
  .union([z.number().int().min(0), z.string().regex(DURATION, "a duration is a number with ms, s, m, h or d")])
  .transform((text): number => (typeof text === "number" ? text : (durationInMs(text) ?? 0)))
  .describe("A duration: milliseconds, or a number with ms, s, m, h or d.");

/** A number that a query may carry as text; whole unless another reader is given. */
export function textual<Schema extends z.ZodType<number, number>>(
  schema: Schema,
  read: (text: string) => number | undefined = wholeNumber,
): z.ZodPreprocess<Schema, number | string> {
  return z.preprocess((given: number | string, context) => {
    if (typeof given !== "string") return given;
    const number = read(given);
    if (number !== undefined) return number;
    context.addIssue("a number is written in plain digits, without a sign, an exponent or a leading zero");
    return z.NEVER;
  }, schema);
}
