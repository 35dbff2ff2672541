/** The values of something since the page was opened. */
import { useEffect, useRef, useState } from "react";
import { withReading, type Reading } from "./readings.ts";

/** The values of something that is asked for again and again, since the page was opened. `at` is when the answer came. */
export function useHistory(value: number | null | undefined, at: number): readonly Reading[] {
  const [history, setHistory] = useState<readonly Reading[]>([]);
  const last = useRef(0);
  useEffect(() => {
    if (value === null || value === undefined || at === last.current) return;
    last.current = at;
    setHistory((before) => withReading(before, { at, value }));
  }, [value, at]);
  return history;
}
