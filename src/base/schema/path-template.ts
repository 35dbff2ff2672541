/** Paths of contracts, which have {name} for what stands in them. */

/** What the parts of a path are in the places of a template's names; undefined where the path does not fit. */
export function pathFields(template: string, parts: readonly string[]): Record<string, string> | undefined {
  const wanted = template.split("/").slice(1);
  if (wanted.length !== parts.length) return undefined;
  const fields: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const given = parts[index] ?? "";
    if (part.startsWith("{")) fields[part.slice(1, -1)] = given;
    else if (part !== given) return undefined;
  }
  return fields;
}
