/** As much of noVNC as is used here; the package has no types. */
declare module "@novnc/novnc" {
  /** What stands in the place of a WebSocket. */
  interface RawChannel {
    binaryType: string;
    readonly protocol: string;
    readonly readyState: string;
    onopen: (() => void) | null;
    onmessage: ((event: { data: ArrayBuffer }) => void) | null;
    onerror: ((event: unknown) => void) | null;
    onclose: ((event: { code: number; reason: string }) => void) | null;
    send(data: Uint8Array): void;
    close(): void;
  }

  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, channel: RawChannel, options?: { shared?: boolean });
    viewOnly: boolean;
    scaleViewport: boolean;
    resizeSession: boolean;
    background: string;
    focus(): void;
    disconnect(): void;
    clipboardPasteFrom(text: string): void;
    addEventListener(type: "connect" | "disconnect", listener: () => void): void;
    addEventListener(type: "clipboard", listener: (event: CustomEvent<{ readonly text: string }>) => void): void;
  }
}
