/**
 * The folder of an agent inside its sandbox, as it is when the agent begins. An agent can write there: settings that switch its questions
 * off, hooks, plugins. None of that may last: of what an agent before left, only its conversation stays.
 */
import { Readable } from "node:stream";
import { VivError } from "../../base/schema/errors.ts";
import type { FileOperations } from "../../machine/drivers/drivers.ts";
import type { Launch } from "./adapter.ts";

export async function writeConfiguration(
  files: FileOperations,
  user: string,
  folder: string,
  launch: Pick<Launch, "files">,
): Promise<void> {
  const all = [...launch.files, { path: "tmp/.keep", content: "", mode: undefined }];
  await Promise.all(
    all.map(({ path, content, mode = 0o644 }) =>
      files.write(`${folder}/${path}`, user, Readable.from([Buffer.from(content)]), { mode, parents: true }),
    ),
  );
}

/** For one that follows another. Whenever the server dies here, the next one begins again, and finds the conversation where it is by then. */
export async function writeConfigurationAnew(
  files: FileOperations,
  user: string,
  folder: string,
  launch: Pick<Launch, "files" | "keeps">,
): Promise<void> {
  const { keeps } = launch;
  if (keeps === "all") return writeConfiguration(files, user, folder, launch);
  const aside = `${folder}.kept`;
  await files.mkdir(aside, user, true);
  for (const [index, path] of keeps.entries()) await unlessMissing(files.move(`${folder}/${path}`, `${aside}/${index}`, user, false));
  await unlessMissing(files.remove(folder, user, true));
  await writeConfiguration(files, user, folder, launch);
  for (const [index, path] of keeps.entries()) await unlessMissing(files.move(`${aside}/${index}`, `${folder}/${path}`, user, false));
  await unlessMissing(files.remove(aside, user, true));
}

async function unlessMissing(work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof VivError) || error.code !== "file_not_found") throw error;
  });
}
