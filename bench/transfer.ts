/** What curl measures itself of one transfer, and rounds in which several ways take turns. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { rested, series } from "./measure.ts";

/** Its own start is not part of what it measures. */
export const CURL = ["-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download} %{time_total}"];
export const WARM_UP = 2;

/** Every side once a round, so that noise of the machine hits all of them alike. */
export async function rounds<Sides extends readonly (() => Promise<number>)[]>(
  count: number,
  ...sides: Sides
): Promise<{ [Side in keyof Sides]: ReturnType<typeof series> }> {
  const samples = sides.map((): number[] => []);
  for (let index = -WARM_UP; index < count; index += 1)
    for (const [side, sample] of sides.entries()) {
      const taken = await rested(sample);
      if (index >= 0) samples[side]?.push(taken);
    }
  return samples.map((taken) => series(taken)) as { [Side in keyof Sides]: ReturnType<typeof series> };
}

/** Milliseconds of a transfer by a curl of this machine. */
export async function fetched(url: string, bytes: number): Promise<number> {
  return milliseconds((await promisify(execFile)("curl", [...CURL, "--noproxy", "*", url])).stdout, bytes, "");
}

/** A transfer that failed, or fell short, would make a fine figure. */
export function milliseconds(text: string, bytes: number, trouble: string): number {
  const [code, size, seconds] = text.split(" ").map(Number);
  if (code !== 200 || size !== bytes || seconds === undefined) throw new Error(`curl got ${text} ${trouble}`);
  return seconds * 1000;
}
