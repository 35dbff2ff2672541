/** What the parser makes of a shell script: every simple command in it, wherever it stands. */
import { UNKNOWN } from "../pattern.ts";

export interface Word {
  /** Without its quotes; parts known only when it runs as they are written. */
  readonly text: string;
  /** The same with UNKNOWN for those parts. */
  readonly match: string;
  /** A part of it was quoted, so it is no keyword. */
  readonly quoted: boolean;
  /** Has a `*`, `?` or `[` that the shell expands. */
  readonly glob: boolean;
  /** Starts with a `~` that the shell expands. */
  readonly tilde: boolean;
}

export interface Assignment {
  readonly name: string;
  readonly value: Word;
}

export interface Redirect {
  /** ">", ">>", "<", "<<<", "<<" and so on, without the descriptor. */
  readonly operator: string;
  readonly target: Word;
  /** Text of a heredoc once its lines were read. */
  body?: Word;
}

export interface SimpleCommand {
  readonly words: Word[];
  readonly assignments: Assignment[];
  readonly redirects: Redirect[];
}

export interface Script {
  readonly commands: SimpleCommand[];
  /** Why some of it can't be understood; each a part of a sentence. */
  readonly problems: string[];
}

export const SHELL_LIMITS = {
  characters: 64 * 1024,
  /** Simple commands of one text, with all texts inside it. */
  commands: 2_000,
  depth: 40,
  /** Passages of one text in which lines are joined. */
  joins: 500,
} as const;

/** A word of plain text. */
export function plainWord(text: string): Word {
  return { text, match: text, quoted: false, glob: false, tilde: false };
}

/** A word that is known only when it runs. */
export function unknownWord(text: string): Word {
  return { text, match: UNKNOWN, quoted: false, glob: false, tilde: false };
}

export function isUnknown({ match }: Word): boolean {
  return match.includes(UNKNOWN);
}
