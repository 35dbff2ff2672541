/** Paths are bytes: what lies above one. */
const SLASH = 0x2f;

/** Every folder above a path, the nearest first. */
export function foldersAbove(path: Buffer): Buffer[] {
  const folders: Buffer[] = [];
  for (let end = path.lastIndexOf(SLASH); end > 0; end = path.lastIndexOf(SLASH, end - 1)) folders.push(path.subarray(0, end));
  return folders;
}
