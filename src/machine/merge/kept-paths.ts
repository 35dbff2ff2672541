/** Which new paths count as part of a change although a rule made inside ignores them: those that a person should see. */
import { GIT_PATHS, isRunningDotfile, RUNS_BY_ITSELF, SUBMODULES } from "./risk-rules.ts";

/** Folders that package managers, compilers and test runners fill. What lies in them is theirs: nothing there is promoted. */
const FILLED_BY_TOOLS =
  /(^|\/)(node_modules|bower_components|\.?venv|__pycache__|\.(pytest|mypy|ruff|parcel)[_-]cache|\.(tox|nox|eggs|gradle|next|nuxt|svelte-kit|turbo|nyc_output|cache)|[^/]+\.egg-info|target|dist|build|out|coverage)\//;

/** `isNamed` tells what else counts, such as files that checks depend on. */
export function staysInChange(path: string, isNamed: (path: string) => boolean): boolean {
  if (FILLED_BY_TOOLS.test(path)) return false;
  return isNamed(path) || isRisky(path);
}

/** By its name alone: its content is looked at once it is part of the change. */
function isRisky(path: string): boolean {
  const lower = path.toLowerCase();
  if (lower === "vivarium.json" || isRunningDotfile(path)) return true;
  return [...RUNS_BY_ITSELF, ...GIT_PATHS, SUBMODULES].some(({ pattern }) => pattern.test(lower));
}
