/** Finds ctrl-P ctrl-Q in what is typed. A ctrl-P waits for the next key; any other key sends both on. */
const CTRL_P = 0x10;
const CTRL_Q = 0x11;

export class DetachKeys {
  #held = false;

  pass(chunk: Buffer): { data: Buffer; detach: boolean } {
    const passed: number[] = [];
    for (const key of chunk) {
      if (this.#held && key === CTRL_Q) return { data: Buffer.from(passed), detach: true };
      if (this.#held) passed.push(CTRL_P);
      this.#held = key === CTRL_P;
      if (!this.#held) passed.push(key);
    }
    return { data: Buffer.from(passed), detach: false };
  }
}
