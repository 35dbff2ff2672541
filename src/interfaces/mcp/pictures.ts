/** Pictures from a sandbox, as a chat shows them. */
import type { ImageContent } from "@modelcontextprotocol/server";
import { LIMITS } from "../../base/schema/limits.ts";

const PNG_HEAD = Buffer.from("89504e470d0a1a0a", "hex");
const JPEG_HEAD = Buffer.from("ffd8ff", "hex");
const PNG_END = Buffer.from("49454e44ae426082", "hex");
const JPEG_END = Buffer.from("ffd9", "hex");

/** Undefined for what is no picture, or too large: a model's API refuses a whole conversation that holds such a one. */
export function pictureOf(content: Buffer): ImageContent | undefined {
  if (content.length > LIMITS.toolPictureBytes) return undefined;
  const mimeType = isPng(content) ? "image/png" : isJpeg(content) ? "image/jpeg" : undefined;
  return mimeType === undefined ? undefined : { type: "image", mimeType, data: content.toString("base64") };
}

/** Whole, with sides that are not too long. */
function isPng(content: Buffer): boolean {
  if (!content.subarray(0, PNG_HEAD.length).equals(PNG_HEAD) || !content.subarray(-PNG_END.length).equals(PNG_END)) return false;
  const sides = [content.readUInt32BE(16), content.readUInt32BE(20)];
  return sides.every((side) => side > 0 && side <= LIMITS.toolPictureSide);
}

function isJpeg(content: Buffer): boolean {
  return content.subarray(0, JPEG_HEAD.length).equals(JPEG_HEAD) && content.subarray(-JPEG_END.length).equals(JPEG_END);
}
