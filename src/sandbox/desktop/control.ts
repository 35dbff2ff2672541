/** Who has keys and pointer of a desktop: programs, until a person takes over; then that person alone, until they give back. */
import type { DesktopHolder } from "../../base/schema/desktop.ts";

export class Control {
  #holder: symbol | null = null;
  /** How each viewer is told who has keys and pointer. */
  readonly #viewers = new Map<symbol, (holder: DesktopHolder) => void>();

  get isTaken(): boolean {
    return this.#holder !== null;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  isHeldBy(viewer: symbol): boolean {
    return this.#holder === viewer;
  }

  /** A viewer comes. One that takes over gets what another person had. Each is told now, and when that changes. Answers how it leaves. */
  enter(viewer: symbol, takesOver: boolean, tell: (holder: DesktopHolder) => void): () => void {
    this.#viewers.set(viewer, tell);
    if (takesOver) this.#give(viewer);
    else tell(this.#seenBy(viewer));
    return () => {
      if (this.#viewers.delete(viewer) && this.#holder === viewer) this.#give(null);
    };
  }

  #give(holder: symbol | null): void {
    this.#holder = holder;
    for (const [viewer, tell] of this.#viewers) tell(this.#seenBy(viewer));
  }

  #seenBy(viewer: symbol): DesktopHolder {
    if (this.#holder === null) return "programs";
    return this.#holder === viewer ? "you" : "person";
  }
}
