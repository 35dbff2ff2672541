/**
 * Characters that make text look different from what it is, by Unicode's own tables: what is shown as nothing, what turns the direction
 * of text, and what steers a terminal. Parts of regular expressions, which need the flag `v`.
 */

/** The Braille blank is a printable character to Unicode, but a person sees nothing. */
const BLANK_SIGNS = String.raw`\u2800`;

/** For a class: `[${UNSEEN}]`. Line ends and tabs are among the control characters. */
export const UNSEEN = String.raw`\p{Default_Ignorable_Code_Point}\p{Cf}\p{Variation_Selector}\p{Bidi_Control}\p{Cc}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}${BLANK_SIGNS}`;

const KEYCAP = String.raw`[0-9#*]\uFE0F?\u20E3`;
const PICTURE = String.raw`\p{Extended_Pictographic}(?:[\uFE0E\uFE0F]|\p{Emoji_Modifier}\uFE0F?)?`;
const JOINED = String.raw`${PICTURE}(?:\u200D${PICTURE})*`;

/** Scripts whose letters are spelled with joiners and their opposite. */
const JOINING =
  "Arabic Syriac Nko Mongolian Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Khmer Myanmar"
    .split(" ")
    .map((script) => String.raw`\p{Script_Extensions=${script}}`)
    .join("");
const JOINER = String.raw`(?<=[[${JOINING}]&&[\p{L}\p{M}]])[\u200C\u200D](?![${UNSEEN}])`;

/** Where such characters are part of what is seen: emoji, and words of scripts that need them. */
export const SEEN_SEQUENCE = String.raw`\p{RGI_Emoji_Tag_Sequence}|${KEYCAP}|${JOINED}|${JOINER}`;
