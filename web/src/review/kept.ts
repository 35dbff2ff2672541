/** What a browser keeps between two visits of a page. */
import { useState } from "react";

export function useKept<Value>(place: string, empty: Value): [Value, (value: Value) => void] {
  const [value, setValue] = useState<Value>(() => {
    const text = localStorage.getItem(place);
    return text === null ? empty : (JSON.parse(text) as Value);
  });
  const keep = (next: Value): void => {
    setValue(next);
    localStorage.setItem(place, JSON.stringify(next));
  };
  return [value, keep];
}
