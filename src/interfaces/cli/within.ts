/** Whether one path lies in the folder of another, by their names. */
import { relative } from "node:path";

export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith("../") && !way.startsWith("/"));
}
