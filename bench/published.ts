/** The command line as users install it: bundled, with its own Node beside it. */
import { cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "../scripts/bundle.ts";

const root = join(import.meta.dirname, "..");

/** Makes it anew and answers with the path of its `viv`. */
export async function publish(folder: string): Promise<string> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await bundle(join(folder, "dist", "program"));
  for (const name of ["bin", "package.json"]) cpSync(join(root, name), join(folder, name), { recursive: true });
  for (const name of ["build", "node_modules"]) symlinkSync(join(root, name), join(folder, name));
  return join(folder, "bin", "viv");
}
