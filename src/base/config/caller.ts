/** The environment of a program that uses the SDK. */
export type { Environment } from "./paths.ts";

export function callerEnvironment(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
