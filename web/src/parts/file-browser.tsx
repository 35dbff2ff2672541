/** Files of a sandbox: folders, a preview as text, download, upload. */
import { useMutation } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { queries, useAnswer } from "../server/queries.ts";
import { readFile, writeFile } from "../server/client.ts";
import { Icon } from "./icons.tsx";
import { Ago, Answered, Command, Empty, Failure } from "./parts.tsx";
import { bytes } from "./words.ts";

/** More is downloaded, not shown. */
const PREVIEW_BYTES = 512 * 1024;

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

function Preview({ sandbox, path, size }: { readonly sandbox: string; readonly path: string; readonly size: number }): ReactNode {
  const [text, setText] = useState<string>();
  const show = useMutation({ mutationFn: async () => setText(await (await readFile(sandbox, path)).text()) });
  const save = useMutation({ mutationFn: () => download(sandbox, path) });
  return (
    <div className="stack preview">
      <div className="row wraps">
        <code className="grow wrap">{path}</code>
        {size <= PREVIEW_BYTES && (
          <button type="button" className="button small" disabled={show.isPending} onClick={() => show.mutate()}>
            Show
          </button>
        )}
        <button type="button" className="button small" disabled={save.isPending} onClick={() => save.mutate()}>
          Download
        </button>
      </div>
      {(show.error ?? save.error) !== null && <Failure error={show.error ?? save.error} />}
      {text !== undefined && (
        <pre className="block" tabIndex={0}>
          {text}
        </pre>
      )}
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
  const [folder, setFolder] = useState(root);
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
