/** A connection of the client in the form that noVNC takes. */
import type { DesktopHolder } from "../../../src/base/schema/desktop.ts";
import type { ScreenMessage } from "../../../src/base/schema/streams.ts";
import type { Channel } from "../../../src/interfaces/client/transport.ts";

type Listener<Event> = ((event: Event) => void) | null;

export class ScreenChannel {
  binaryType = "arraybuffer";
  readonly protocol = "";
  onopen: (() => void) | null = null;
  onerror: Listener<unknown> = null;
  onclose: Listener<{ code: number; reason: string }> = null;
  readonly #channel: Channel;
  #hear: Listener<{ data: ArrayBuffer }> = null;
  #isOpen = true;
  readonly #told: (holder: DesktopHolder) => void;

  /** `told` hears who has keys and pointer. */
  constructor(channel: Channel, told: (holder: DesktopHolder) => void) {
    this.#channel = channel;
    this.#told = told;
  }

  get readyState(): string {
    return this.#isOpen ? "open" : "closed";
  }

  get onmessage(): Listener<{ data: ArrayBuffer }> {
    return this.#hear;
  }

  /** noVNC sets it once, when it begins: from then on it is told what comes. */
  set onmessage(hear: Listener<{ data: ArrayBuffer }>) {
    const isFirst = this.#hear === null && hear !== null;
    this.#hear = hear;
    if (isFirst) this.#channel.listen({ message: (data) => this.#message(data), close: (code) => this.#close(code) });
  }

  #message(data: string | Uint8Array): void {
    if (typeof data === "string") {
      const message = JSON.parse(data) as ScreenMessage;
      return message.type === "control" ? this.#told(message.holder) : this.close();
    }
    this.#hear?.({ data: new Uint8Array(data).buffer });
  }

  #close(code: number): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.onclose?.({ code, reason: "" });
  }

  send(data: Uint8Array): void {
    this.#channel.send(data.slice()).catch((error: unknown) => this.onerror?.(error));
  }

  /** Told later, as a WebSocket does: noVNC waits for it only after it has called this. */
  close(): void {
    this.#channel.close();
    queueMicrotask(() => this.#close(1000));
  }
}
