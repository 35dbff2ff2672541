/** A terminal in a sandbox. Its theme is its own. What programs inside print can't do more than draw: links and clipboard are off. */
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { useEffect, useRef, useState, type ReactNode } from "react";
import type { CommandStream } from "../../../src/interfaces/client/command-stream.ts";
import { shell } from "../server/client.ts";
import "@xterm/xterm/css/xterm.css";

/** For phones, which have no such keys. */
const KEYS: readonly (readonly [name: string, bytes: string])[] = [
  ["esc", "\x1b"],
  ["tab", "\t"],
  ["ctrl C", "\x03"],
  ["ctrl D", "\x04"],
  ["↑", "\x1b[A"],
  ["↓", "\x1b[B"],
  ["←", "\x1b[D"],
  ["→", "\x1b[C"],
];

const encoder = new TextEncoder();

interface Joined {
  readonly type: (text: string) => void;
  readonly close: () => void;
}

/** Joins the terminal with a shell inside; `onEnd` hears in words how that ended. */
function join(terminal: Terminal, fit: FitAddon, sandbox: string, onEnd: (words: string) => void): Joined {
  let stream: CommandStream | undefined;
  let closed = false;
  const work = async (): Promise<void> => {
    stream = await shell(sandbox, { rows: terminal.rows, cols: terminal.cols });
    if (closed) return stream.close();
    for await (const output of stream.output) if (output.stream !== "gap") terminal.write(output.data);
    onEnd(`The shell ended with ${(await stream.end).exitCode}.`);
  };
  work().catch((error: unknown) => onEnd(error instanceof Error ? error.message : String(error)));
  const type = (text: string): void => {
    // A shell that has ended says so below the terminal.
    void stream?.write(encoder.encode(text)).catch(() => undefined);
  };
  terminal.onData(type);
  terminal.onResize(({ rows, cols }) => stream?.resize(rows, cols));
  const resize = (): void => fit.fit();
  addEventListener("resize", resize);
  return {
    type,
    close: () => {
      closed = true;
      removeEventListener("resize", resize);
      stream?.close();
    },
  };
}

export default function SandboxTerminal({ sandbox }: { readonly sandbox: string }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const typing = useRef<(text: string) => void>(() => undefined);
  const [ended, setEnded] = useState<string>();
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (place.current === null) return;
    setEnded(undefined);
    const terminal = new Terminal({
      fontSize: 13,
      cursorBlink: false,
      scrollback: 5_000,
      linkHandler: null,
      theme: { background: "#16171a", foreground: "#e6e6e6" },
    });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(place.current);
    fit.fit();
    const joined = join(terminal, fit, sandbox, (words) => setEnded((before) => before ?? words));
    typing.current = joined.type;
    terminal.focus();
    return () => {
      joined.close();
      terminal.dispose();
    };
  }, [sandbox, count]);
  return (
    <div className="stack">
      <div className="terminal-frame" ref={place} />
      <div className="row wraps keybar">
        {KEYS.map(([name, bytes]) => (
          <button key={name} type="button" className="button small" onClick={() => typing.current(bytes)}>
            {name}
          </button>
        ))}
      </div>
      {ended !== undefined && (
        <div className="row">
          <span className="muted">{ended}</span>
          <button type="button" className="button small" onClick={() => setCount(count + 1)}>
            Start another
          </button>
        </div>
      )}
    </div>
  );
}
