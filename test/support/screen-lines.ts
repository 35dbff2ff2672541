/** What a terminal shows once it has read an output: as much of one as Vivarium's own drawing uses. */
export function screenLines(output: string): string[] {
  const lines: string[] = [""];
  let row = 0;
  let column = 0;
  // oxlint-disable-next-line no-control-regex
  for (const [token] of output.matchAll(/\u001b\[[0-?]*[@-~]|[^]/gu)) {
    const line = lines[row] ?? "";
    if (token === "\n") {
      row += 1;
      lines[row] ??= "";
    } else if (token === "\r") column = 0;
    else if (token.endsWith("A") && token.startsWith("\u001b")) row = Math.max(0, row - Number(token.slice(2, -1) || 1));
    else if (token === "\u001b[K") lines[row] = line.slice(0, column);
    else if (token === "\u001b[J") {
      lines[row] = line.slice(0, column);
      lines.length = row + 1;
    } else if (!token.startsWith("\u001b")) {
      lines[row] = line.padEnd(column).slice(0, column) + token + line.slice(column + 1);
      column += 1;
    }
    if (token === "\n") column = 0;
  }
  return lines;
}
