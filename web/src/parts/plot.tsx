/** A small plot: one idea, zero-based, the last value in words beside the line. */
import { useEffect, useRef, useState, type ReactNode } from "react";

const WIDTH = 240;
const HEIGHT = 40;
/** Values that are kept: ten minutes of one every two seconds. */
const KEPT = 300;

/** The values of something that is asked for again and again, since the page was opened. */
export function useHistory(value: number | null | undefined, stamp: number): readonly number[] {
  const [history, setHistory] = useState<readonly number[]>([]);
  const last = useRef(0);
  useEffect(() => {
    if (value === null || value === undefined || stamp === last.current) return;
    last.current = stamp;
    setHistory((before) => [...before, value].slice(-KEPT));
  }, [value, stamp]);
  return history;
}

export function Plot({
  name,
  values,
  limit,
  words,
}: {
  readonly name: string;
  readonly values: readonly number[];
  readonly limit: number | null;
  readonly words: string;
}): ReactNode {
  const top = Math.max(limit ?? 0, ...values, 1);
  // One value is a line, too: a plot that was just opened is not empty.
  const shown = values.length === 1 ? [...values, ...values] : values;
  const points = shown.map(
    (value, index) =>
      `${((index / Math.max(1, shown.length - 1)) * WIDTH).toFixed(1)},${(HEIGHT - (value / top) * (HEIGHT - 2)).toFixed(1)}`,
  );
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
