/** A picture as a PNG file. */
import { promisify } from "node:util";
import { constants, crc32, deflate } from "node:zlib";

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Four bytes a pixel, row by row: red, green, blue, and one that means nothing. */
  readonly pixels: Buffer;
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** Eight bits each for red, green and blue. */
const TRUE_COLOUR = [8, 2, 0, 0, 0];
/** The row above is subtracted: screens have many rows alike. */
const FILTER_UP = 2;

const compress = promisify(deflate) as (data: Buffer, options: { level: number; strategy: number }) => Promise<Buffer>;

function chunk(kind: string, data: Buffer): Buffer {
  const framed = Buffer.alloc(data.length + 12);
  framed.writeUInt32BE(data.length, 0);
  framed.write(kind, 4, "latin1");
  data.copy(framed, 8);
  framed.writeUInt32BE(crc32(framed.subarray(4, data.length + 8)), data.length + 8);
  return framed;
}

function filtered({ width, height, pixels }: Picture): Buffer {
  const stride = width * 4;
  const rows = Buffer.allocUnsafe(height * (width * 3 + 1));
  let at = 0;
  for (let y = 0; y < height; y++) {
    rows[at++] = FILTER_UP;
    const row = y * stride;
    const above = row - stride;
    for (let from = row; from < row + stride; from += 4) {
      const up = above + from - row;
      rows[at++] = (pixels[from] ?? 0) - (y === 0 ? 0 : (pixels[up] ?? 0));
      rows[at++] = (pixels[from + 1] ?? 0) - (y === 0 ? 0 : (pixels[up + 1] ?? 0));
      rows[at++] = (pixels[from + 2] ?? 0) - (y === 0 ? 0 : (pixels[up + 2] ?? 0));
    }
  }
  return rows;
}

export async function encodePng(picture: Picture): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(picture.width, 0);
  header.writeUInt32BE(picture.height, 4);
  Buffer.from(TRUE_COLOUR).copy(header, 8);
  const data = await compress(filtered(picture), { level: 1, strategy: constants.Z_RLE });
  return Buffer.concat([SIGNATURE, chunk("IHDR", header), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}
