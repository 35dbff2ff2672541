/** The program as it was bundled for this run, and where programs keep compiled code, so that each is compiled once in a run. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));
export const SERVER = join(CHECKOUT, ".cache/program/server.js");
/** Of the command line, what is loaded. */
export const COMMAND_LINE = join(CHECKOUT, ".cache/program/cli.js");
/** `viv`, which loads that. */
export const PROGRAM = join(CHECKOUT, ".cache/package/bin/viv");

/** A user's cache folder, in the form that XDG_CACHE_HOME names it. */
export const USER_CACHE = join(CHECKOUT, ".cache/user");
export const COMPILED = join(USER_CACHE, "vivarium", "compiled");
mkdirSync(COMPILED, { recursive: true });
