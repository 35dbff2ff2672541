/** A page in the background gives its connections back: a browser has six for one address, over all tabs. */

const HIDDEN_MS = 20_000;

/** Calls `leave` when the page was hidden for a while, and `back` when it is seen again after that. Returns what ends this. */
export function whileSeen(leave: () => void, back: () => void): () => void {
  let timer: number | undefined;
  let left = false;
  const change = (): void => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = window.setTimeout(() => {
        left = true;
        leave();
      }, HIDDEN_MS);
    } else if (left) {
      left = false;
      back();
    }
  };
  document.addEventListener("visibilitychange", change);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", change);
  };
}
