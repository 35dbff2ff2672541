/**
 * The folder of an agent inside its sandbox, as it is when the agent begins. An agent can write there: settings that switch its questions
 * off, hooks, plugins. None of that may last: of what an agent before left, only its conversation stays.
 */
import { existsSync } from "node:fs";
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

/** Whether the project has one of these. One that can't be looked at is there. */
export async function hasSome(files: FileOperations, user: string, project: string, names: readonly string[] = []): Promise<boolean> {
  const isThere = async (name: string): Promise<boolean> => {
    try {
      await files.stat(`${project}/${name}`, user);
    } catch (error) {
      return !(error instanceof VivError) || error.code !== "file_not_found";
    }
    return true;
  };
  return (await Promise.all(names.map(isThere))).includes(true);
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

/**
 * An agent that is root inside can leave settings for all agents of its sandbox. Where the real machine has none, none are left. Those of
 * the real machine stay as they are inside: an agent that asks less because of them is ended when it acts.
 */
export async function removeMachineSettings(
  files: FileOperations,
  { machineSettings = [] }: Pick<Launch, "machineSettings">,
): Promise<void> {
  const extra = machineSettings.filter((path) => !existsSync(path));
  await Promise.all(extra.map((path) => unlessMissing(files.remove(path, "root", true))));
}

async function unlessMissing(work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof VivError) || error.code !== "file_not_found") throw error;
  });
}
