/** What a second look at the files that failed, alone, may take back: a test that fails beside others and passes alone depends on how busy the machine is. */

export interface TestRecord {
  readonly fullName: string;
  readonly status: string;
  readonly failureMessages?: readonly string[];
  readonly meta?: { readonly skipReason?: string };
}

export interface FileRecord {
  readonly name: string;
  readonly startTime: number;
  readonly endTime: number;
  readonly status: string;
  readonly message: string;
  readonly assertionResults: readonly TestRecord[];
}

export interface Run {
  readonly exitCode: number;
  /** Undefined when vitest ended before it could write its results. */
  readonly files: readonly FileRecord[] | undefined;
  /** Errors outside any test: no file has failed for them. */
  readonly strayErrors: number;
}

/** More files than this that fail at once have a cause that a second look does not take away. */
const MOST = 4;

/** The files that are to be run once more, alone. */
export function forSecondLook({ files, strayErrors }: Run): readonly FileRecord[] {
  const failed = files?.filter(({ status }) => status === "failed") ?? [];
  return failed.length > MOST || strayErrors > 0 ? [] : failed;
}

/** The first run, with the second results of those files in which each test that failed has passed; a test that is skipped or missing then has not. */
export function afterSecondLook(first: Run, second: Run): Run {
  const again = new Map(second.files?.map((file) => [file.name, file]));
  const files = first.files?.map((file) => {
    const later = again.get(file.name);
    return file.status === "failed" && later !== undefined && hasPassed(file, later) ? later : file;
  });
  return { exitCode: second.exitCode, files, strayErrors: first.strayErrors + second.strayErrors };
}

function hasPassed(first: FileRecord, second: FileRecord): boolean {
  return second.status === "passed" && first.assertionResults.every((test) => test.status !== "failed" || passes(second, test.fullName));
}

/** What failed in a file and passes in the second run: tests, or where none failed a hook of the file. */
export function unsteadyParts(first: FileRecord, { files }: Run): { readonly what: string; readonly why: string }[] {
  const second = files?.find(({ name }) => name === first.name);
  if (second === undefined) return [];
  const failed = first.assertionResults.filter(({ status }) => status === "failed");
  if (failed.length === 0) return second.status === "passed" ? [{ what: `a hook (${first.name})`, why: first.message }] : [];
  return failed
    .filter(({ fullName }) => passes(second, fullName))
    .map(({ fullName, failureMessages }) => ({ what: `${fullName} (${first.name})`, why: failureMessages?.join("\n") ?? first.message }));
}

/** Tests may have the same name: all of them must pass. */
function passes({ assertionResults }: FileRecord, name: string): boolean {
  const named = assertionResults.filter(({ fullName }) => fullName === name);
  return named.length > 0 && named.every(({ status }) => status === "passed");
}
