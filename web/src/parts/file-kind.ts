/** What a file can be shown as, by its own bytes: a name is the choice of a program inside. */

/** Pictures of points alone. A drawing such as SVG is text that may hold scripts, and is shown as text. */
const PICTURES: readonly (readonly [type: string, begins: RegExp])[] = [
  ["image/png", /^\x89PNG\r\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
];

const LOOKED_AT = 8_192;

export type FileKind = { readonly kind: "picture"; readonly type: string } | { readonly kind: "text" } | { readonly kind: "other" };

export function kindOf(bytes: Uint8Array): FileKind {
  const start = String.fromCharCode(...bytes.subarray(0, LOOKED_AT));
  const type = PICTURES.find(([, begins]) => begins.test(start))?.[0];
  if (type !== undefined) return { kind: "picture", type };
  return { kind: start.includes("\0") ? "other" : "text" };
}

/** Whether it may be worth loading a larger file to show it. */
export function isCalledPicture(path: string): boolean {
  return /\.(?:png|jpe?g|gif|webp)$/i.test(path);
}
