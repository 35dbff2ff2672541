/** Two attempts against each other: for each file, what the one changed beside what the other changed. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { lazy, Suspense, useState, type ReactNode } from "react";
import type { Attempt, Experiment } from "../../../src/base/schema/experiment.ts";
import { Empty, Failure, Section } from "../parts/parts.tsx";
import { filesOf, type FilePatch } from "../parts/patch.ts";
import { plural } from "../parts/words.ts";
import { patch } from "../server/client.ts";
import { byRank, isOver } from "./attempt-words.ts";
import "../style/diff.css";

const DiffView = lazy(() => import("../diff/diff-view.tsx"));

const LIVE_MS = 4_000;
/** Files that are drawn unfolded; the rest on demand. */
const OPEN_FILES = 12;
/** Lines of a file's change above which it is folded. */
const LONG_LINES = 400;

interface Pair {
  readonly path: string;
  readonly one: FilePatch | undefined;
  readonly other: FilePatch | undefined;
}

/** The lines of a change without the names of blobs: equal lines are an equal change. */
function essence(file: FilePatch | undefined): string | undefined {
  return file?.text.replace(/^index .*\n/m, "");
}

/** Files that programs write: they are last, and folded. */
function isLock(path: string): boolean {
  return /(?:^|\/)(?:[\w.-]*lock\.(?:json|yaml)|[\w.-]+\.lock|go\.sum)$/.test(path);
}

function isSame({ one, other }: Pair): boolean {
  return one !== undefined && essence(one) === essence(other);
}

/** Where they differ first, then what only one of them touches, then what they do alike. */
function pairsOf(ones: readonly FilePatch[], others: readonly FilePatch[]): readonly Pair[] {
  const paths = [...new Set([...ones, ...others].map(({ path }) => path))];
  const rank = (pair: Pair): number =>
    isLock(pair.path) ? 4 : isSame(pair) ? 3 : pair.one === undefined ? 2 : pair.other === undefined ? 1 : 0;
  return paths
    .map((path): Pair => ({ path, one: ones.find((file) => file.path === path), other: others.find((file) => file.path === path) }))
    .toSorted((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1));
}

function Amount({ file }: { readonly file: FilePatch }): ReactNode {
  return (
    <span className="small number">
      <span className="is-passed">+{file.added}</span> <span className="is-failed">−{file.removed}</span>
    </span>
  );
}

function Half({ file, name }: { readonly file: FilePatch | undefined; readonly name: string }): ReactNode {
  return (
    <div className="half">
      <header className="small">
        <span className="strong cut">{name}</span>
        {file !== undefined && <span className="muted">{file.status}</span>}
        <span className="grow" />
        {file !== undefined && <Amount file={file} />}
      </header>
      {file?.notes.map((note) => (
        <p key={note} className="small note wrap">
          {note}
        </p>
      ))}
      {file === undefined ? (
        <p className="empty small">It does not touch this file.</p>
      ) : (
        !file.binary &&
        file.added + file.removed > 0 && (
          <Suspense fallback={<p className="empty small">Loading the diff …</p>}>
            <DiffView patch={file.text} style="unified" />
          </Suspense>
        )
      )}
    </div>
  );
}

function PairCard({
  pair,
  names,
  opened,
}: {
  readonly pair: Pair;
  readonly names: readonly [string, string];
  readonly opened: boolean;
}): ReactNode {
  const same = isSame(pair);
  const lines = [pair.one, pair.other].reduce((sum, file) => sum + (file === undefined ? 0 : file.added + file.removed), 0);
  const [open, setOpen] = useState(opened && lines <= LONG_LINES);
  const word = same
    ? "the same in both"
    : pair.one === undefined
      ? `only ${names[1]}`
      : pair.other === undefined
        ? `only ${names[0]}`
        : "different";
  return (
    <article className="card file pair">
      <header>
        <button
          type="button"
          className="button plain small"
          data-row
          aria-expanded={open}
          aria-label={`${open ? "Fold" : "Unfold"} ${pair.path}`}
          onClick={() => setOpen(!open)}
        >
          {open ? "▾" : "▸"}
        </button>
        <code className="grow wrap">{pair.path}</code>
        <span className="small muted">{word}</span>
      </header>
      {open && (
        <div className={`sides ${same ? "alike" : ""}`}>
          <Half file={pair.one} name={same ? `${names[0]} and ${names[1]}` : names[0]} />
          {!same && <Half file={pair.other} name={names[1]} />}
        </div>
      )}
    </article>
  );
}

function usePatch(attempt: Attempt): UseQueryResult<string> {
  return useQuery({
    queryKey: ["diffSandbox", "patch", attempt.sandbox, "promotable"],
    queryFn: ({ signal }) => patch(attempt.sandbox ?? "", { promotable: true }, signal),
    enabled: attempt.sandbox !== null,
    ...(isOver(attempt) ? {} : { refetchInterval: LIVE_MS }),
  });
}

function Summary({ pairs, names }: { readonly pairs: readonly Pair[]; readonly names: readonly [string, string] }): ReactNode {
  const count = (fits: (pair: Pair) => boolean): number => pairs.filter(fits).length;
  const parts = [
    [count((pair) => pair.one !== undefined && pair.other !== undefined && !isSame(pair)), "changed in different ways"],
    [count(isSame), "changed alike"],
    [count(({ other }) => other === undefined), `only in ${names[0]}`],
    [count(({ one }) => one === undefined), `only in ${names[1]}`],
  ] as const;
  return (
    <span className="small muted">
      {plural(pairs.length, "file")}
      {parts.filter(([number]) => number > 0).map(([number, words]) => ` · ${number} ${words}`)}
    </span>
  );
}

function Against({ one, other }: { readonly one: Attempt; readonly other: Attempt }): ReactNode {
  const left = usePatch(one);
  const right = usePatch(other);
  const gone = [one, other].find(({ sandbox }) => sandbox === null);
  if (gone !== undefined)
    return (
      <div className="card">
        <Empty>
          {isOver(gone)
            ? `The sandbox of ${gone.name} is gone, and its change with it. Keep sandboxes with --keep all.`
            : `${gone.name} has no sandbox yet. Its change is shown as it grows.`}
        </Empty>
      </div>
    );
  const error = left.error ?? right.error;
  if (left.data === undefined || right.data === undefined)
    return error === null ? (
      <p className="muted">Loading both changes …</p>
    ) : (
      <Failure error={error} retry={() => void (left.refetch(), right.refetch())} />
    );
  const pairs = pairsOf(filesOf(left.data), filesOf(right.data));
  const names = [one.name, other.name] as const;
  return (
    <>
      <Summary pairs={pairs} names={names} />
      {pairs.length === 0 && (
        <div className="card">
          <Empty>Neither of them has changed a file of the project.</Empty>
        </div>
      )}
      {pairs.map((pair, index) => (
        <PairCard key={pair.path} pair={pair} names={names} opened={index < OPEN_FILES && !isLock(pair.path)} />
      ))}
    </>
  );
}

function Choice({
  label,
  value,
  attempts,
  onChange,
}: {
  readonly label: string;
  readonly value: Attempt;
  readonly attempts: readonly Attempt[];
  readonly onChange: (name: string) => void;
}): ReactNode {
  return (
    <select className="field choose" aria-label={label} value={value.name} onChange={(event) => onChange(event.target.value)}>
      {attempts.map(({ name }) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

/** `wanted` is what the address says: two names with a comma between them. */
export function Compare({
  experiment,
  wanted,
  onChoose,
}: {
  readonly experiment: Experiment;
  readonly wanted: string | null;
  readonly onChoose: (names: string) => void;
}): ReactNode {
  const attempts = byRank(experiment);
  const [first, second] = (wanted ?? "").split(",");
  const one = attempts.find(({ name }) => name === first) ?? attempts.find(({ name }) => name !== second);
  const other = attempts.find(({ name }) => name === second && name !== one?.name) ?? attempts.find((attempt) => attempt !== one);
  if (one === undefined || other === undefined) return null;
  return (
    <Section
      title="Two against each other"
      aside={
        <span className="row choosing">
          <Choice
            label="The one"
            value={one}
            attempts={attempts}
            onChange={(name) => onChoose(`${name},${name === other.name ? one.name : other.name}`)}
          />
          <span className="muted small">against</span>
          <Choice
            label="The other"
            value={other}
            attempts={attempts}
            onChange={(name) => onChoose(`${name === one.name ? other.name : one.name},${name}`)}
          />
        </span>
      }
    >
      <Against key={`${one.name},${other.name}`} one={one} other={other} />
    </Section>
  );
}
