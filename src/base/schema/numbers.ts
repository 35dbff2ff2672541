/**
 * Numbers that come as text, in one spelling: plain decimal digits. What else a parser somewhere takes for a number (1e3, 0x1, +1, 01, a
 * space around it) is refused, so that two readers of the same text never see two numbers. No schema library: the command line starts
 * without one.
 */

const WHOLE = "(?:0|[1-9]\\d{0,14})";
const DECIMAL = `${WHOLE}(?:\\.\\d{1,9})?`;
const WHOLE_ONLY = new RegExp(`^${WHOLE}$`);
const DECIMAL_ONLY = new RegExp(`^${DECIMAL}$`);
/** As programs print measurements. */
const MEASURED = /^-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?$/i;

export const SIZE = new RegExp(`^(${DECIMAL})(?: ?(?:([kmgt])i?b?|b))?$`, "i");
export const DURATION = new RegExp(`^(${DECIMAL}) ?(ms|s|m|h|d)$`, "i");

const UNITS = ["", "k", "m", "g", "t"];
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function wholeNumber(text: string): number | undefined {
  return WHOLE_ONLY.test(text) ? Number(text) : undefined;
}

export function decimalNumber(text: string): number | undefined {
  return DECIMAL_ONLY.test(text) ? Number(text) : undefined;
}

/** A TCP port. */
export function portNumber(text: string): number | undefined {
  const port = wholeNumber(text) ?? 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}

/** What a program printed as its measurement: an exponent is usual there, other bases are not. */
export function measuredNumber(text: string): number | undefined {
  const number = MEASURED.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

/** "512m" or "4g" in bytes. */
export function sizeInBytes(text: string): number | undefined {
  const [, number, unit = ""] = SIZE.exec(text) ?? [];
  return number === undefined ? undefined : Math.round(Number(number) * 1024 ** UNITS.indexOf(unit.toLowerCase()));
}

/** "90s" or "2h" in milliseconds. */
export function durationInMs(text: string): number | undefined {
  const [, number, unit = ""] = DURATION.exec(text) ?? [];
  return number === undefined ? undefined : Math.round(Number(number) * (UNIT_MS[unit.toLowerCase()] ?? 1));
}
