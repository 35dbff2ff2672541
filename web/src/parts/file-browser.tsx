/** Files of a sandbox: folders, a preview as text or picture, download, upload. The address says which folder is open. */
import { useMutation } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";
import { go, useAddress } from "../app/router.tsx";
import { queries, useAnswer } from "../server/queries.ts";
import { readFile, writeFile } from "../server/client.ts";
import { isCalledPicture, kindOf, type FileKind } from "./file-kind.ts";
import { Icon } from "./icons.tsx";
import { Ago, Answered, Command, Empty, Failure } from "./parts.tsx";
import { bytes } from "./words.ts";

/** More is downloaded, not shown. */
const PREVIEW_BYTES = 512 * 1024;
const PICTURE_BYTES = 8 * 1024 * 1024;

function joined(folder: string, name: string): string {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

function parentOf(folder: string): string {
  return folder.slice(0, folder.lastIndexOf("/")) || "/";
}

async function download(sandbox: string, path: string): Promise<void> {
  const url = URL.createObjectURL(await readFile(sandbox, path));
  const link = document.createElement("a");
  link.href = url;
  link.download = path.slice(path.lastIndexOf("/") + 1);
  link.click();
  URL.revokeObjectURL(url);
}

/** The content of a file, and what it is shown as. */
interface Content {
  readonly shown: FileKind;
  readonly body: Blob;
  readonly text: string;
}

async function contentOf(sandbox: string, path: string): Promise<Content> {
  const body = await readFile(sandbox, path);
  const shown = kindOf(new Uint8Array(await body.arrayBuffer()));
  return { shown, body, text: shown.kind === "text" ? await body.text() : "" };
}

/** A blob with a type of our own choice: whatever the bytes are, the browser takes them for a picture or for nothing. */
function Picture({ body, type, name }: { readonly body: Blob; readonly type: string; readonly name: string }): ReactNode {
  const [url, setUrl] = useState<string>();
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    const made = URL.createObjectURL(body.slice(0, body.size, type));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [body, type]);
  if (broken) return <p className="muted">The browser can't show this picture.</p>;
  return url === undefined ? null : <img className="picture" src={url} alt={name} onError={() => setBroken(true)} />;
}

function Preview({ sandbox, path, size }: { readonly sandbox: string; readonly path: string; readonly size: number }): ReactNode {
  const show = useMutation({ mutationFn: () => contentOf(sandbox, path) });
  const save = useMutation({ mutationFn: () => download(sandbox, path) });
  return (
    <div className="stack preview">
      <div className="row wraps">
        <code className="grow wrap">{path}</code>
        {size <= (isCalledPicture(path) ? PICTURE_BYTES : PREVIEW_BYTES) && (
          <button type="button" className="button small" disabled={show.isPending} onClick={() => show.mutate()}>
            Show
          </button>
        )}
        <button type="button" className="button small" disabled={save.isPending} onClick={() => save.mutate()}>
          Download
        </button>
      </div>
      {(show.error ?? save.error) !== null && <Failure error={show.error ?? save.error} />}
      {show.data?.shown.kind === "text" && (
        <pre className="block" tabIndex={0}>
          {show.data.text}
        </pre>
      )}
      {show.data?.shown.kind === "picture" && <Picture body={show.data.body} type={show.data.shown.type} name={path} />}
      {show.data?.shown.kind === "other" && <p className="muted">It is neither text nor a picture. Download it to look at it.</p>}
    </div>
  );
}

export function FileBrowser({
  sandbox,
  name,
  root,
}: {
  readonly sandbox: string;
  readonly name: string;
  readonly root: string;
}): ReactNode {
  const { path: page, query: asked } = useAddress();
  const folder = asked.get("folder") ?? root;
  const setFolder = (path: string): void => go(`${page}?show=files&folder=${encodeURIComponent(path)}`, { keep: true });
  const [chosen, setChosen] = useState<string>();
  const query = useAnswer("listFiles", { sandbox, path: folder });
  const upload = useMutation({
    mutationFn: async (files: FileList) => {
      for (const file of files) await writeFile(sandbox, joined(folder, file.name), file);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["listFiles"] }),
  });
  return (
    <div className="stack">
      <div className="row wraps">
        <button
          type="button"
          className="button small"
          disabled={folder === "/"}
          onClick={() => setFolder(parentOf(folder))}
          aria-label="Up one folder"
        >
          <Icon name="back" />
        </button>
        <code className="grow wrap">{folder}</code>
        <label className="button small">
          Upload
          <input
            type="file"
            multiple
            className="sr-only"
            onChange={(event) => event.target.files !== null && upload.mutate(event.target.files)}
          />
        </label>
        <Command line={`viv files ls ${name} ${folder}`} />
      </div>
      {upload.error !== null && <Failure error={upload.error} />}
      <Answered query={query} what="the folder">
        {({ entries }) => {
          const inside = entries
            .filter(({ path }) => path !== ".")
            .toSorted((one, other) => Number(other.type === "dir") - Number(one.type === "dir") || (one.path < other.path ? -1 : 1));
          return (
            <div className="card">
              {inside.length === 0 ? (
                <Empty>The folder is empty.</Empty>
              ) : (
                <ul className="list">
                  {inside.slice(0, 2_000).map((entry) => {
                    const path = joined(folder, entry.path);
                    return (
                      <li key={entry.path}>
                        <button
                          type="button"
                          className="fileline"
                          data-row
                          onClick={() => (entry.type === "dir" ? setFolder(path) : setChosen(chosen === path ? undefined : path))}
                        >
                          <Icon name={entry.type === "dir" ? "folder" : "file"} />
                          <span className="grow cut">
                            {entry.path}
                            {entry.target === null ? "" : ` → ${entry.target}`}
                          </span>
                          <span className="small muted number">{entry.type === "file" ? bytes(entry.size) : entry.type}</span>
                          <span className="small muted hide-phone">
                            <Ago at={entry.modifiedAt} />
                          </span>
                        </button>
                        {chosen === path && <Preview sandbox={sandbox} path={path} size={entry.size} />}
                      </li>
                    );
                  })}
                </ul>
              )}
            </div>
          );
        }}
      </Answered>
    </div>
  );
}
