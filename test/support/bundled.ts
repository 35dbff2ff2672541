/** Before any test: the program as users get it, in a few files. It starts in half the time, and the tests start it thousands of times. */
import { cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { bundle } from "../../scripts/bundle.ts";
import { CHECKOUT, PROGRAM, SERVER } from "./compiled.ts";

export async function setup(): Promise<void> {
  const folder = dirname(SERVER);
  await bundle(folder);
  // bin/viv runs the sources where it finds them above itself, as in the checkout, and else what lies in dist/.
  const copy = join(dirname(PROGRAM), "..");
  cpSync(join(CHECKOUT, "bin"), dirname(PROGRAM), { recursive: true });
  mkdirSync(join(copy, "dist"), { recursive: true });
  mkdirSync(join(copy, "build"), { recursive: true });
  const links = { "dist/program": folder, node_modules: join(CHECKOUT, "node_modules"), "build/front": join(CHECKOUT, "build/front") };
  for (const [name, target] of Object.entries(links)) {
    rmSync(join(copy, name), { force: true });
    symlinkSync(target, join(copy, name));
  }
}
