/** Contents as promotions and refreshes find them. */
import { ContentsWriter } from "../../src/machine/merge/contents.ts";

export function keepContent(folder: string, id: string, bytes: Buffer): void {
  const writer = new ContentsWriter(folder);
  writer.add(id, bytes);
  writer.close();
}
