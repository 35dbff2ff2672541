/** A program that moves the bytes of a file between this machine and a sandbox without the server in between. */
import type { Inside } from "./transfer.ts";

export interface Carried extends Inside {
  /** A file inside is read, or written. */
  readonly direction: "read" | "write";
  /** Of the file inside that is written. */
  readonly mode?: number;
}

export interface Carrier {
  /** The file inside, as it is afterwards; undefined where it can't be carried, and nothing has changed inside. Rejects with a refusal. */
  carry(inside: Carried, file: number): Promise<unknown>;
}
