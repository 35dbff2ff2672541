/** An agent that acts without asking, although its configuration has it ask. */

export function unaskedReason(title: string, tool: string, reason = ""): string {
  const why = reason === "" ? "" : ` ${reason}`;
  return `${title} used ${tool} without asking, so its configuration was changed, and it was ended.${why}`;
}
