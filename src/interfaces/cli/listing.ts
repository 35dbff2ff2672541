/** What commands that list experiments, promotions and the like have in common. */
import { resolve } from "node:path";

export const LISTING_OPTIONS = {
  all: { type: "flag", short: "a", summary: "Also those that ended long ago" },
  project: { type: "text", short: "p", value: "PATH", completes: "path", summary: "Only those of this project" },
  quiet: { type: "flag", short: "q", summary: "Print ids only" },
} as const;

export function listingInput(options: { all: boolean; project: string | undefined }, cwd: string): { all: boolean; project?: string } {
  return { all: options.all, ...(options.project === undefined ? {} : { project: resolve(cwd, options.project) }) };
}
