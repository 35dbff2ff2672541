/** Where programs of the tests keep compiled code, so that each is compiled once in a run and not once a process. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A user's cache folder, in the form that XDG_CACHE_HOME names it. */
export const USER_CACHE = fileURLToPath(new URL("../../.cache/user", import.meta.url));
export const COMPILED = join(USER_CACHE, "vivarium", "compiled");
mkdirSync(COMPILED, { recursive: true });
