/** A page from a sandbox in a frame. It has an origin of its own, and may neither leave its frame nor reach this page. */
import { useEffect, useState, type ReactNode } from "react";
import type { OutputOf } from "../../../src/base/schema/contracts.ts";
import { Failure } from "../parts/parts.tsx";
import "../style/preview.css";

type Link = OutputOf<"openPreview">;

/** What a page from a sandbox may do: everything that it does alone, and nothing to the page around it. */
const RIGHTS = "allow-scripts allow-same-origin allow-forms allow-modals allow-downloads allow-popups allow-popups-to-escape-sandbox";

interface FrameProps {
  readonly title: string;
  /** Makes a link, which lets this frame in once. */
  readonly open: () => Promise<Link>;
  /** Another value shows the page anew. */
  readonly stamp: string;
  readonly large?: boolean;
}

export function PreviewFrame({ title, open, stamp, large = false }: FrameProps): ReactNode {
  const [url, setUrl] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [again, setAgain] = useState(0);
  useEffect(() => {
    let gone = false;
    setUrl(undefined);
    setError(undefined);
    open().then(
      (link) => !gone && setUrl(link.url),
      (failure: unknown) => !gone && setError(failure),
    );
    return () => {
      gone = true;
    };
    // A link works once: only another stamp asks for another one.
  }, [stamp, again]);
  if (error !== undefined) return <Failure error={error} retry={() => setAgain(again + 1)} />;
  if (url === undefined) return <p className="muted">Opening {title} …</p>;
  return (
    <iframe
      key={url}
      className={large ? "preview-frame is-large" : "preview-frame"}
      src={url}
      title={title}
      sandbox={RIGHTS}
      referrerPolicy="no-referrer"
    />
  );
}

/** A tab of its own has other cookies than a frame, so it gets a link of its own. */
export async function openTab(open: () => Promise<Link>): Promise<void> {
  window.open((await open()).url, "_blank", "noopener,noreferrer");
}
