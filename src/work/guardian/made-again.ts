/** Files that tools make, and make again: nothing is lost with them, and a change of them is no work of the agent's. */
const REMADE =
  /^(\.\/)?(.*\/)?(node_modules|\.venv|venv|site-packages|dist|build|out|target|coverage|__pycache__|\.cache|\.pytest_cache|\.next|\.turbo|tmp)(\/|$)|^\/(var\/)?tmp\/|\.(log|tmp|pyc|o)$/;

export function isMadeAgain(path: string): boolean {
  return REMADE.test(path);
}
