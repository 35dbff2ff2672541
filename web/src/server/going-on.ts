/** Streams that go on by themselves: after a break, when the page has a new connection to the server, and when it is seen again. */
import { whileSeen } from "./hidden.ts";
import { live } from "./live.ts";

const AGAIN_MS = 1_500;

interface GoingOn<Item> {
  /** The number after which it begins. */
  readonly after: number;
  readonly open: (after: number, signal: AbortSignal) => AsyncIterable<Item>;
  readonly hear: (item: Item) => void;
  /** Whether nothing more will come. Left out where something always may. */
  readonly isOver?: (signal: AbortSignal) => Promise<boolean>;
}

/** Hears each item once, in order. Returns what ends this. */
export function goOn<Item extends { readonly sequence: number }>({ after, open, hear, isOver }: GoingOn<Item>): () => void {
  let last = after;
  let current = new AbortController();
  const read = async (signal: AbortSignal): Promise<void> => {
    let over = false;
    while (!signal.aborted) {
      try {
        for await (const item of open(last, signal)) {
          if (signal.aborted) return;
          if (item.sequence <= last) continue;
          last = item.sequence;
          hear(item);
        }
        if (over) return;
        // A server that stops ends its streams in good order, too. What was over before a stream began is in that stream to its end.
        over = (await isOver?.(signal)) ?? false;
        if (over) continue;
      } catch {
        // The line that says how fresh the page is tells of it; the stream goes on where it broke off.
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  };
  const begin = (): void => {
    current.abort();
    current = new AbortController();
    void read(current.signal);
  };
  begin();
  // A connection that died while the computer slept says nothing: where the page needed a new one, so does this.
  const unlisten = live.onReturn(begin);
  const unwatch = whileSeen(() => current.abort(), begin);
  return () => {
    unlisten();
    unwatch();
    current.abort();
  };
}
