/** Keys as X numbers them. */
import { VivError } from "../../base/schema/errors.ts";

/** Names as xdotool and X have them, in lower case. */
const NAMED: Readonly<Record<string, number>> = {
  backspace: 0xff08,
  tab: 0xff09,
  return: 0xff0d,
  enter: 0xff0d,
  pause: 0xff13,
  scroll_lock: 0xff14,
  escape: 0xff1b,
  esc: 0xff1b,
  home: 0xff50,
  left: 0xff51,
  up: 0xff52,
  right: 0xff53,
  down: 0xff54,
  prior: 0xff55,
  page_up: 0xff55,
  pageup: 0xff55,
  next: 0xff56,
  page_down: 0xff56,
  pagedown: 0xff56,
  end: 0xff57,
  print: 0xff61,
  insert: 0xff63,
  menu: 0xff67,
  num_lock: 0xff7f,
  kp_enter: 0xff8d,
  shift: 0xffe1,
  shift_l: 0xffe1,
  shift_r: 0xffe2,
  ctrl: 0xffe3,
  control: 0xffe3,
  control_l: 0xffe3,
  control_r: 0xffe4,
  caps_lock: 0xffe5,
  meta: 0xffe7,
  alt: 0xffe9,
  alt_l: 0xffe9,
  alt_r: 0xffea,
  super: 0xffeb,
  super_l: 0xffeb,
  win: 0xffeb,
  cmd: 0xffeb,
  altgr: 0xfe03,
  delete: 0xffff,
  space: 0x20,
  plus: 0x2b,
  minus: 0x2d,
};

const F1 = 0xffbe;
const MOST_F = 24;
const UNICODE = 0x01000000;

/** Characters that are keys of their own. */
const TYPED: Readonly<Record<string, number>> = { "\n": 0xff0d, "\r": 0xff0d, "\t": 0xff09, "\b": 0xff08, "\u001b": 0xff1b };

function keysymOfCharacter(character: string): number {
  const point = character.codePointAt(0) ?? 0;
  const isLatin = (point >= 0x20 && point <= 0x7e) || (point >= 0xa0 && point <= 0xff);
  return isLatin ? point : UNICODE + point;
}

/** The keys that type a text, one a character. Other control characters have no key. */
export function keysOfText(text: string): number[] {
  const keys: number[] = [];
  for (const character of text.replaceAll("\r\n", "\n")) {
    const key = TYPED[character] ?? (/\p{Cc}/u.test(character) ? undefined : keysymOfCharacter(character));
    if (key === undefined)
      throw new VivError("invalid_input", `The text has a control character (${JSON.stringify(character)}), which no key types.`);
    keys.push(key);
  }
  return keys;
}

function keyOfName(name: string): number {
  const known = Object.hasOwn(NAMED, name.toLowerCase()) ? NAMED[name.toLowerCase()] : undefined;
  if (known !== undefined) return known;
  const number = Number(/^f([1-9]\d?)$/i.exec(name)?.[1] ?? 0);
  if (number >= 1 && number <= MOST_F) return F1 + number - 1;
  if (/^\P{Cc}$/u.test(name)) return keysymOfCharacter(name);
  throw new VivError("invalid_input", `There is no key ${name}.`, {
    remedy: "Write it as xdotool does, such as `ctrl+shift+t`, `Return` or `F5`.",
  });
}

/** Keys held together, such as `ctrl+c`, in the order in which they are pressed. A plus itself is `plus`, or a plus alone. */
export function keysOfChord(chord: string): number[] {
  if (chord === "+") return [keyOfName("plus")];
  return chord.split("+").map((name) => keyOfName(name));
}
