/** Aligned columns. */
import { clean, cut, width } from "./text.ts";

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  /** Colours the finished cell. */
  readonly paint?: (cell: string, row: Row) => string;
  readonly right?: boolean;
  /** Gives way when the terminal is narrow. */
  readonly shrinks?: boolean;
}

const GAP = "  ";
const LEAST = 8;

/** Values are cleaned here, so no caller can forget it. */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  options: { columns?: number | undefined } = {},
): string[] {
  const cells = rows.map((row) => columns.map((column) => clean(column.value(row))));
  const widths = columns.map((column, index) => Math.max(width(column.title), ...cells.map((line) => width(line[index] ?? ""))));
  shrink(widths, columns, options.columns);
  const render = (line: readonly string[], row?: Row): string =>
    line
      .map((text, index) => {
        const column = columns[index];
        const room = widths[index] ?? 0;
        const shown = cut(text, room);
        const pad = " ".repeat(Math.max(0, room - width(shown)));
        const painted = row === undefined || !column?.paint ? shown : column.paint(shown, row);
        if (column?.right) return pad + painted;
        return index === columns.length - 1 ? painted : painted + pad;
      })
      .join(GAP)
      .trimEnd();
  return [render(columns.map((column) => column.title)), ...cells.map((line, index) => render(line, rows[index]))];
}

function shrink<Row>(widths: number[], columns: readonly Column<Row>[], room: number | undefined): void {
  if (room === undefined) return;
  const total = (): number => widths.reduce((sum, each) => sum + each, 0) + GAP.length * (widths.length - 1);
  for (;;) {
    const over = total() - room;
    if (over <= 0) return;
    const widest = widths.reduce(
      (best, each, index) => (columns[index]?.shrinks && each > LEAST && each > (widths[best] ?? 0) ? index : best),
      -1,
    );
    if (widest < 0) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

/** "key:  value" lines, values aligned. */
export function fields(pairs: readonly (readonly [name: string, value: string])[]): string[] {
  const longest = Math.max(0, ...pairs.map(([name]) => width(name)));
  return pairs.map(([name, value]) => `${name}${" ".repeat(longest - width(name))}${GAP}${value}`.trimEnd());
}
