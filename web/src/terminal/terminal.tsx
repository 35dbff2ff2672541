/** A terminal in a sandbox. Its theme is its own. What programs inside print can't do more than draw: links and clipboard are off. */
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { Shell, type ShellState } from "./shell.ts";
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

export default function SandboxTerminal({ sandbox }: { readonly sandbox: string }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const typing = useRef<(text: string) => void>(() => undefined);
  const [state, setState] = useState<ShellState>({ kind: "running" });
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (place.current === null) return;
    setState({ kind: "running" });
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
    const shell = new Shell(
      sandbox,
      { rows: terminal.rows, cols: terminal.cols },
      {
        output: (data) => terminal.write(data),
        gap: (bytes) => terminal.write(`\r\n[${bytes} bytes of output are not kept any more]\r\n`),
        state: setState,
      },
    );
    typing.current = (text) => shell.type(text);
    terminal.onData((text) => shell.type(text));
    terminal.onResize(({ rows, cols }) => shell.resize(rows, cols));
    const resize = (): void => fit.fit();
    const leave = (): void => shell.close();
    addEventListener("resize", resize);
    // A tab that is closed or goes elsewhere runs no clean-up of React.
    addEventListener("pagehide", leave);
    terminal.focus();
    return () => {
      removeEventListener("resize", resize);
      removeEventListener("pagehide", leave);
      shell.close();
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
      {state.kind === "apart" && (
        <p className="muted" role="status">
          The connection broke off. The shell goes on, and the page comes back to it by itself; what you type meanwhile is lost.
        </p>
      )}
      {state.kind === "ended" && (
        <div className="row">
          <span className="muted">{state.words}</span>
          <button type="button" className="button small" onClick={() => setCount(count + 1)}>
            Start another
          </button>
        </div>
      )}
    </div>
  );
}
