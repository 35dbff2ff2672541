/** What an archive from outside brings, looked at entry by entry while it arrives. */
import type { ParsedTarEntry } from "modern-tar";
import { VivError } from "../../base/schema/errors.ts";

export const MAX_ENTRIES = 200_000;
/** What the kernel takes for a path, and for one name of it. */
const MAX_PATH = 4096;
const MAX_NAME = 255;
/** What an entry may need beside its content: headers, long names, attributes. What is read ahead comes on top, and the end. */
const MOST_BESIDE_BYTES = 8 * 1024;
const MOST_AHEAD_BYTES = 16 * 1024 ** 2;

/** A tree rather than a list of paths: deep names then cost their length, not its square. */
type Folder = Map<string, Folder | "file">;

export class ArchiveContents {
  readonly #root: Folder = new Map();
  readonly #mostBytes: number;
  #entries = 0;
  #names = 0;
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** Takes one more entry, or refuses the archive. Sizes count as announced, before their bytes have come. */
  add({ header }: ParsedTarEntry): void {
    const { name, type, size } = header;
    const refuse = (why: string): never => {
      throw new VivError("invalid_input", `The archive's entry ${JSON.stringify(name.slice(0, 200))} ${why}; nothing was unpacked.`);
    };
    if (type !== "file" && type !== "directory") return refuse("is not a plain file or folder");
    if (name.startsWith("/") || name.split("/").includes("..")) refuse("points outside the folder");
    if (/[\0\n]/.test(name)) refuse("has a name that can't be unpacked");
    const parts = name.split("/").filter((part) => part !== "" && part !== ".");
    if (Buffer.byteLength(name) > MAX_PATH || parts.some((part) => Buffer.byteLength(part) > MAX_NAME)) refuse("has too long a name");
    if (type === "file" && parts.length === 0) refuse("has no name");
    this.#entries += 1;
    this.#bytes += size;
    if (this.#bytes > this.#mostBytes) refuse(`brings more than the ${this.#mostBytes} bytes there can be room for`);
    if (!this.#place(parts, type)) refuse("is there twice");
    // Folders may be announced again and again, and a name may need many folders: both are counted.
    if (this.#entries > MAX_ENTRIES || this.#names > MAX_ENTRIES) refuse("is one too many");
  }

  /** As many bytes as an archive with these entries may have had by now; attributes of nothing could go on for ever. */
  get mostBytesSoFar(): number {
    return this.#bytes + this.#entries * MOST_BESIDE_BYTES + MOST_AHEAD_BYTES;
  }

  /** False where the name is taken: names are compared as they will be on disk, and one is a file or a folder, not both. */
  #place(parts: readonly string[], type: "file" | "directory"): boolean {
    let folder = this.#root;
    for (const [index, part] of parts.entries()) {
      const before = folder.get(part);
      const isFile = type === "file" && index === parts.length - 1;
      if (before === "file" || (before !== undefined && isFile)) return false;
      if (before !== undefined) {
        folder = before;
        continue;
      }
      const next: Folder = new Map();
      folder.set(part, isFile ? "file" : next);
      this.#names += 1;
      folder = next;
    }
    return true;
  }
}
