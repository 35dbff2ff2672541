/** The server as it was bundled for this run, and where programs keep compiled code, so that each is compiled once in a run. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const SERVER = fileURLToPath(new URL("../../.cache/program/server.js", import.meta.url));

/** A user's cache folder, in the form that XDG_CACHE_HOME names it. */
export const USER_CACHE = fileURLToPath(new URL("../../.cache/user", import.meta.url));
export const COMPILED = join(USER_CACHE, "vivarium", "compiled");
mkdirSync(COMPILED, { recursive: true });
