/** How a command of the CLI is declared: once, for parsing, help, completion and docs/CLI.md. */
import type { Client } from "../client/client.ts";
import type { Caller } from "./caller.ts";
import type { Screen } from "./screen.ts";

interface OptionBase {
  readonly summary: string;
  /** One letter. */
  readonly short?: string;
}

export interface FlagOption extends OptionBase {
  readonly type: "flag";
}

export interface ValueOption extends OptionBase {
  /** What the value is: text as it stands, a whole or broken number, a size in bytes, a duration in milliseconds. */
  readonly type: "text" | "integer" | "number" | "size" | "duration";
  /** How the value is called in help. */
  readonly value: string;
  /** The value may be left out, and is empty then: the next word is the value only where it looks like this. */
  readonly optional?: RegExp;
  /** What completion offers. */
  readonly completes?: CompletionKind | readonly string[];
}

export interface ListOption extends OptionBase {
  /** May be given several times. */
  readonly type: "list";
  readonly value: string;
  readonly completes?: CompletionKind | readonly string[];
}

export type OptionDeclaration = FlagOption | ValueOption | ListOption;
export type OptionDeclarations = Readonly<Record<string, OptionDeclaration>>;

/**
 * Paths of this machine, commands of viv, or what a server that runs knows. A source is anything that can be promoted, `copy` either end of
 * a copy; commands and snapshots are those of the sandbox named first, attempts those of the experiment.
 */
export type CompletionKind =
  | "path"
  | "viv-command"
  | "sandbox"
  | "copy"
  | "command"
  | "running-command"
  | "snapshot"
  | "experiment"
  | "attempt"
  | "run"
  | "job"
  | "automation"
  | "undoable"
  | "source"
  | "question"
  | "rule"
  | "secret";

export interface PositionalDeclaration {
  /** In capitals, as in usage. */
  readonly name: string;
  readonly summary: string;
  readonly optional?: boolean;
  /** Takes all that is left, options among it too when it is a command line. */
  readonly rest?: "values" | "command-line";
  /** A hint for the error when it is missing. */
  readonly without?: string;
  /** What completion offers. */
  readonly completes?: CompletionKind | readonly string[];
}

type ValueOf<Option extends OptionDeclaration> = Option extends FlagOption
  ? boolean
  : Option extends ListOption
    ? readonly string[]
    : Option extends { readonly type: "text" }
      ? string | undefined
      : number | undefined;

export type OptionValues<Options extends OptionDeclarations> = { readonly [Name in keyof Options]: ValueOf<Options[Name]> };

/** What a command gets to work with. */
export interface Invocation<Options extends OptionDeclarations = OptionDeclarations> {
  readonly options: OptionValues<Options>;
  /** Positionals in order, without the rest. */
  readonly positionals: readonly string[];
  readonly rest: readonly string[];
  readonly json: boolean;
  readonly screen: Screen;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Whose streams and signals these are. */
  readonly caller: Caller;
  /** Connects on first use, starting the server when none runs. */
  readonly client: () => Promise<Client>;
}

export interface CommandDeclaration<Options extends OptionDeclarations = OptionDeclarations> {
  readonly name: string;
  readonly summary: string;
  /** More about it, a sentence or two. */
  readonly details?: string;
  readonly examples: readonly (readonly [line: string, what: string])[];
  readonly options: Options;
  readonly positionals: readonly PositionalDeclaration[];
  /** Returns the exit code; nothing means 0. */
  readonly run: (invocation: Invocation<Options>) => Promise<number | void>;
}

/** Lets the types of a command's options follow from their declaration. */
export function command<const Options extends OptionDeclarations>(declaration: CommandDeclaration<Options>): CommandDeclaration {
  // Only the parser calls run, with values it made from these very options.
  return declaration as unknown as CommandDeclaration;
}

/** "--browser [ADDRESS]". */
export function longLabel(name: string, option: OptionDeclaration): string {
  if (option.type === "flag") return `--${name}`;
  return "optional" in option ? `--${name} [${option.value}]` : `--${name} ${option.value}`;
}

/** Options that every command has. */
export const COMMON_OPTIONS = {
  json: { type: "flag", summary: 'Print one JSON value on stdout and nothing else; an error is {"error":{code,message,remedy}}.' },
  help: { type: "flag", short: "h", summary: "Say how the command is used." },
} as const satisfies OptionDeclarations;

/** "SANDBOX COMMAND [ARGUMENT...]". */
export function usageOf(declaration: CommandDeclaration): string {
  const words = [`viv ${declaration.name}`];
  if (Object.keys(declaration.options).length > 0) words.push("[options]");
  for (const positional of declaration.positionals) {
    const dots = positional.rest === undefined ? "" : "...";
    const name = positional.rest === "command-line" ? `-- ${positional.name}` : positional.name;
    words.push(positional.optional ? `[${name}${dots}]` : `${name}${dots}`);
  }
  return words.join(" ");
}
