/** A small plot: one idea, zero-based, the last value in words beside the line. */
import type { ReactNode } from "react";
import type { Reading } from "./readings.ts";

const WIDTH = 240;
const HEIGHT = 40;

export function Plot({
  name,
  values,
  limit,
  words,
}: {
  readonly name: string;
  readonly values: readonly Reading[];
  readonly limit: number | null;
  readonly words: string;
}): ReactNode {
  const top = values.reduce((most, { value }) => Math.max(most, value), Math.max(limit ?? 0, 1));
  const from = values[0]?.at ?? 0;
  const span = (values.at(-1)?.at ?? 0) - from;
  const point = (x: number, value: number): string => `${x.toFixed(1)},${(HEIGHT - (value / top) * (HEIGHT - 2)).toFixed(1)}`;
  // Where there is one value, the line is as wide as the plot: a plot that was just opened is not empty.
  const points =
    span === 0
      ? values.slice(-1).flatMap(({ value }) => [point(0, value), point(WIDTH, value)])
      : values.map(({ at, value }) => point(((at - from) / span) * WIDTH, value));
  return (
    <figure className="plot">
      <figcaption className="row small">
        <span className="muted grow">{name}</span>
        <span className="number">{words}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${name}: ${words}`}>
        {points.length > 1 && <polygon points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />}
        {points.length > 1 && <polyline points={points.join(" ")} />}
      </svg>
    </figure>
  );
}
