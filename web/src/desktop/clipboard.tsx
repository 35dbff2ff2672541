/** The clipboard of a desktop. Nothing goes into it or out of it unless the person presses a button: what is copied inside is hostile. */
import { useState, type ReactNode } from "react";

interface ClipboardProps {
  /** What a program inside copied last. */
  readonly copied: string;
  /** Puts a text into the clipboard inside. */
  readonly paste: (text: string) => void;
}

export function DesktopClipboard({ copied, paste }: ClipboardProps): ReactNode {
  const [text, setText] = useState("");
  const [words, setWords] = useState("");
  const send = (): void => {
    paste(text);
    setWords("It is in the clipboard of the desktop: paste it there.");
  };
  const copy = (): void => {
    navigator.clipboard.writeText(copied).then(
      () => setWords("Copied to your clipboard."),
      () => setWords("The browser refused: mark the text and copy it."),
    );
  };
  return (
    <details className="card desktop-clipboard">
      <summary>Clipboard</summary>
      <div className="sides">
        <label className="stack">
          <span className="small">From you to the desktop</span>
          <textarea className="field" rows={3} value={text} onChange={({ target }) => setText(target.value)} />
          <button type="button" className="button small" disabled={text === ""} onClick={send}>
            Send to the desktop
          </button>
        </label>
        <label className="stack">
          <span className="small">Copied in the desktop</span>
          <textarea className="field" rows={3} readOnly value={copied} placeholder="What you copy or mark there stands here." />
          <button type="button" className="button small" disabled={copied === ""} onClick={copy}>
            Copy to my clipboard
          </button>
        </label>
      </div>
      <p className="small muted" role="status">
        {words}
      </p>
    </details>
  );
}
