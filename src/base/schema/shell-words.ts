/** Words as a POSIX shell reads them: each quoted where it must be. */

export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A command line as one would type it. */
export function shellLine(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}
