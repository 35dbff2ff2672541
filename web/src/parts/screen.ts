/** What the screen is like, as it changes. */
import { useSyncExternalStore } from "react";

function useMedia(text: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const query = matchMedia(text);
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => matchMedia(text).matches,
  );
}

/** Wide enough for two columns of code. */
export function useWide(): boolean {
  return useMedia("(min-width: 1100px)");
}

export function useDark(): boolean {
  const system = useMedia("(prefers-color-scheme: dark)");
  const chosen = document.documentElement.dataset["theme"];
  return chosen === undefined ? system : chosen === "dark";
}
