/** Tar archives that no honest program makes. */
export interface RawEntry {
  readonly name: string;
  /** "0" file, "1" hard link, "2" link, "3" character device, "4" block device, "5" folder, "6" fifo. */
  readonly type?: string;
  readonly link?: string;
  readonly content?: string;
}

export function rawTar(entries: readonly RawEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? "");
    return [rawHeader(entry, content.length), content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

/** The header of an entry alone, whatever comes after it. */
export function rawHeader({ name, type = "0", link = "" }: RawEntry, size: number): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0, 100);
  block.write("0000644\0", 100);
  block.write("0000000\0", 108);
  block.write("0000000\0", 116);
  block.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  block.write("00000000000\0", 136);
  block.write("        ", 148);
  block.write(type, 156);
  block.write(link, 157, 100);
  block.write("ustar\u000000", 257);
  let sum = 0;
  // Bombs have hundreds of thousands of headers: a function for each byte would take seconds.
  for (let at = 0; at < block.length; at += 1) sum += block[at] ?? 0;
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
