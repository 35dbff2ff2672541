/**
 * Paths inside a sandbox are bytes, the API speaks strings. A byte that is no UTF-8 becomes a lone surrogate
 * (U+DC80 to U+DCFF), which no real text holds: the way back is exact, and JSON carries it as an escape.
 */
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function decodePath(bytes: Buffer): string {
  try {
    return strict.decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return decodePieces(bytes);
  }
}

function sequenceLength(lead: number): number {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

function decodePieces(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length;) {
    const lead = bytes[at] ?? 0;
    const piece = bytes.subarray(at, at + sequenceLength(lead));
    const character = piece.toString("utf8");
    const whole = piece.length > 0 && Buffer.from(character).equals(piece);
    text += whole ? character : String.fromCharCode(0xdc00 + lead);
    at += whole ? piece.length : 1;
  }
  return text;
}

export function encodePath(path: string): Buffer {
  if (path.isWellFormed()) return Buffer.from(path);
  const parts: Buffer[] = [];
  for (const character of path) {
    const unit = character.charCodeAt(0);
    const escaped = character.length === 1 && unit >= 0xdc80 && unit <= 0xdcff;
    parts.push(escaped ? Buffer.of(unit - 0xdc00) : Buffer.from(character));
  }
  return Buffer.concat(parts);
}
