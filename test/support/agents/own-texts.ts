/** A recorded line of an agent without the long texts of its own: lists of its commands, its instructions. No adapter reads them. */
const LISTS: ReadonlySet<string> = new Set(["availableCommands", "commands", "slash_commands", "skills", "availableModels", "models"]);
const LONG = 600;
const KEPT = 120;

export function withoutOwnTexts(line: string): string {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return line;
  }
  return JSON.stringify(value, (name, inner: unknown) => {
    if (LISTS.has(name) && Array.isArray(inner)) return [];
    return typeof inner === "string" && inner.length > LONG ? `${inner.slice(0, KEPT)} [shortened]` : inner;
  });
}
