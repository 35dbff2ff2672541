/** Who has keys and pointer of a desktop: programs, until a person takes over; then that person alone, until they give back. */
export class Control {
  #holder: symbol | null = null;
  #viewers = 0;

  get isTaken(): boolean {
    return this.#holder !== null;
  }

  get viewers(): number {
    return this.#viewers;
  }

  isHeldBy(viewer: symbol): boolean {
    return this.#holder === viewer;
  }

  /** A viewer comes. One that takes over gets what another person had. Answers how it leaves. */
  enter(viewer: symbol, takesOver: boolean): () => void {
    this.#viewers++;
    if (takesOver) this.#holder = viewer;
    let here = true;
    return () => {
      if (!here) return;
      here = false;
      this.#viewers--;
      if (this.#holder === viewer) this.#holder = null;
    };
  }
}
