/** Sizes and durations as people write them. */
import { z } from "zod";

/** "512m", "4g", or a number of bytes. */
export const ByteSize = z
  .union([z.number().int().min(0), z.string().regex(/^\d+(\.\d+)?\s*([kmgt]i?b?)?$/i, "a size is a number with k, m, g or t")])
  .transform((size): number => {
    if (typeof size === "number") return size;
    const match = /^([\d.]+)\s*([kmgt]?)/i.exec(size);
    const power = ["", "k", "m", "g", "t"].indexOf((match?.[2] ?? "").toLowerCase());
    return Math.round(Number(match?.[1] ?? 0) * 1024 ** Math.max(power, 0));
  })
  .describe("A size: bytes, or a number with k, m, g or t.");

/** "90s", "10m", "2h", or a number of milliseconds. */
export const Duration = z
  .union([z.number().int().min(0), z.string().regex(/^\d+(\.\d+)?\s*(ms|s|m|h|d)$/i, "a duration is a number with ms, s, m, h or d")])
  .transform((text): number => {
    if (typeof text === "number") return text;
    const match = /^([\d.]+)\s*(ms|s|m|h|d)$/i.exec(text);
    const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[(match?.[2] ?? "ms").toLowerCase()] ?? 1;
    return Math.round(Number(match?.[1] ?? 0) * unit);
  })
  .describe("A duration: milliseconds, or a number with ms, s, m, h or d.");
