/** What the `files` commands share. */
import type { OptionDeclarations, PositionalDeclaration } from "./command.ts";

export const FILE_OPTIONS = {
  user: { type: "text", short: "u", value: "USER", summary: "User inside whose rights apply" },
} as const satisfies OptionDeclarations;

export const SANDBOX = { name: "SANDBOX", summary: "Id or name", completes: "sandbox" } as const satisfies PositionalDeclaration;
export const PATH = {
  name: "PATH",
  summary: "Path inside; relative ones start at the project's folder",
} as const satisfies PositionalDeclaration;

export function withUser(options: { readonly user: string | undefined }): { user?: string } {
  return options.user === undefined ? {} : { user: options.user };
}
