/** Words of a text, folded so that forms of one word are equal: what searches and summaries compare. */

const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const HUMP = /(\p{Ll}|\p{N})(?=\p{Lu})/gu;
const MARKS = /\p{M}/gu;
/** The same for text of ASCII alone, which most is: classes of Unicode take several times as long. */
const ASCII = /^[\0-\x7f]*$/;
const ASCII_WORD = /[a-z0-9]+/g;
const ASCII_HUMP = /([a-z0-9])(?=[A-Z])/g;
const LONGEST = 40;

const STOP = new Set(
  "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it its just me my no not of on or our out she should so some such than that the their them then there these they this those to too up us was we were what when where which who why will with would you your let now also about after all am any because before being both each few more most other over same very here".split(
    " ",
  ),
);

/** As they stand, in lower case. */
export function wordsOf(text: string): string[] {
  const found = ASCII.test(text)
    ? text.replace(ASCII_HUMP, "$1 ").toLowerCase().match(ASCII_WORD)
    : text.normalize("NFKD").replace(MARKS, "").replace(HUMP, "$1 ").toLowerCase().match(WORD);
  return (found ?? []).map((word) => (word.length > LONGEST ? word.slice(0, LONGEST) : word));
}

/** Without the words that every text has. */
export function tellingWordsOf(text: string): string[] {
  return wordsOf(text).filter((word) => !STOP.has(word));
}

export function stemsOf(text: string): string[] {
  return tellingWordsOf(text).map(stem);
}

/** Most words of a text are in the next one, too. */
const KNOWN = new Map<string, string>();
const MOST_KNOWN = 20_000;

const ENDINGS: readonly (readonly [RegExp, string])[] = [
  [/ies$/, "y"],
  [/sses$/, "ss"],
  [/([^su])s$/, "$1"],
  [/(?:ational|ations?|ators?|ating|ated|ate)$/, ""],
  [/(?:ions?)$/, ""],
  [/(?:ingly|edly|ments?|ness|ably|able|ible|ally|ures?)$/, ""],
  [/(?:ings?|ed|ly)$/, ""],
  [/(?:ers?|ors?)$/, ""],
];

/** Enough of English that `failing`, `fails` and `failure` are one; what it does to other words it does to all their forms. */
export function stem(word: string): string {
  const known = KNOWN.get(word);
  if (known !== undefined) return known;
  if (KNOWN.size >= MOST_KNOWN) KNOWN.clear();
  const stemmed = withoutEndings(word);
  KNOWN.set(word, stemmed);
  return stemmed;
}

function withoutEndings(word: string): string {
  let short = word;
  for (const [ending, kept] of ENDINGS) {
    const cut = short.replace(ending, kept);
    if (cut.length >= 3 && /[aeiouy]/.test(cut)) short = cut;
  }
  const undoubled = /([bdfgklmnprtvz])\1$/.test(short) && short.length > 3 ? short.slice(0, -1) : short;
  return undoubled.length > 3 ? undoubled.replace(/e$/, "") : undoubled;
}
