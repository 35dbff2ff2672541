/**
 * Texts that look like a secret: promotions stop at them, records leave them out. They are matched against hostile text, so every
 * repetition in a pattern is bounded: a match takes time in proportion to the text.
 */
export interface SecretPattern {
  readonly pattern: RegExp;
  readonly what: string;
  /** A text without any of these has no match: looking for them takes a tenth of the time. */
  readonly needs: readonly string[];
}

/** The first text that a pattern finds. */
export function findSecret({ pattern, needs }: SecretPattern, text: string): string | undefined {
  return needs.some((part) => text.includes(part)) ? pattern.exec(text)?.[0] : undefined;
}

export const SECRETS: readonly SecretPattern[] = [
  { pattern: /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----/, what: "a private key", needs: ["-----BEGIN "] },
  { pattern: /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/, what: "an access key of AWS", needs: ["AKIA", "ASIA"] },
  {
    pattern: /\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_[A-Za-z0-9_]{40,}\b/,
    what: "a token of GitHub",
    needs: ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
  },
  { pattern: /\bglpat-[A-Za-z0-9_-]{20,}\b/, what: "a token of GitLab", needs: ["glpat-"] },
  {
    pattern: /\bnpm_[A-Za-z0-9]{36}\b|:_authToken\s{0,64}=\s{0,64}(?!\$)[^\s$]{8,}/,
    what: "a token of npm",
    needs: ["npm_", ":_authToken"],
  },
  { pattern: /\bxox[abeprs]-[A-Za-z0-9-]{10,}/, what: "a token of Slack", needs: ["xox"] },
  { pattern: /\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{32,}/, what: "a key of a model provider", needs: ["sk-"] },
  { pattern: /\bAIza[0-9A-Za-z_-]{35}\b/, what: "a key of Google", needs: ["AIza"] },
  { pattern: /\b(?:sk|rk)_live_[0-9a-zA-Z]{20,}\b/, what: "a key of Stripe", needs: ["_live_"] },
  { pattern: /\bhf_[A-Za-z0-9]{30,}\b/, what: "a token of Hugging Face", needs: ["hf_"] },
  {
    pattern: /\b[a-z][a-z0-9+.-]{0,31}:\/\/[^\s/:@'"<>]+:(?!\$|<|\*|x{3}|password@|pass@|secret@)[^\s/'"<>]{6,256}@[\w.-]+/i,
    what: "a login in an address",
    needs: ["://"],
  },
  {
    pattern: /^[ \t]{0,64}machine\s{1,64}\S{1,256}\s{1,64}login\s{1,64}\S{1,256}\s{1,64}password\s{1,64}\S{1,256}/m,
    what: "a login of .netrc",
    needs: ["machine"],
  },
];

/** Names of variables and fields whose value is secret. */
const SECRET_NAMES = /(?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|private[-_]?key|credential|authorization|bearer|session|cookie)/i;
/** `--token value`, `TOKEN=value`, `Authorization: Bearer value`. */
const ASSIGNED = new RegExp(
  `(${SECRET_NAMES.source}[\\w-]{0,64}["']?(?:\\s{0,64}[=:]\\s{0,64}|\\s{1,64})(?:bearer |basic )?)` +
    `("[^"]{1,1024}"|'[^']{1,1024}'|["']?[^\\s"'&;|]{4,})`,
  "gi",
);
/** A header goes on to the end of its quotes or line, whatever scheme it names. */
const HEADERS = /((?:cookie|authorization)["']?\s{0,64}:\s{0,64}["']?)[^"'\r\n]{1,4096}/gi;
const SIGNED = /\beyJ[\w-]{8,256}\.[\w-]{8,4096}\.[\w-]*/g;

export const REDACTED = "[redacted]";

const EVERYWHERE = SECRETS.map(({ pattern }) => new RegExp(pattern.source, `${pattern.flags.replace("g", "")}g`));
/** A password with a slash in it, which a parser of addresses would not find. */
const ADDRESSES = /(\b[a-z][a-z0-9+.-]{0,31}:\/\/)[^\s/:@'"<>]{0,256}:(?!\d{1,5}\/|\$|<|\*)[^\s'"<>]{1,256}@/gi;
/** `-u name:value` of curl and others, `sshpass -p value`. */
const LOGINS = /((?:^|\s)(?:-u|--user|--proxy-user)[=\s]?["']?[^\s:"']+:|\bsshpass\s{1,64}-p\s{0,64}["']?)[^\s"']+/g;

/** A text without any of these is one without secrets: most texts, in a tenth of the time. */
const NEEDED = new RegExp([...SECRETS.flatMap(({ needs }) => needs), "-u", "sshpass", "eyJ", SECRET_NAMES.source].join("|"), "i");

/** The text without what looks secret in it. */
export function redact(text: string): string {
  if (text.length < 8 || !NEEDED.test(text)) return text;
  const known = EVERYWHERE.reduce((rest, pattern) => rest.replace(pattern, REDACTED), text).replace(LOGINS, `$1${REDACTED}`);
  const headless = known.replace(ADDRESSES, `$1${REDACTED}@`).replace(SIGNED, REDACTED).replace(HEADERS, `$1${REDACTED}`);
  return headless.replace(ASSIGNED, (all, before: string) => (all.endsWith(REDACTED) ? all : `${before}${REDACTED}`));
}

/** `["--token", "value"]`: words of a command, one by one. */
function isBehindName(before: unknown, value: unknown): boolean {
  if (typeof before !== "string" || typeof value !== "string") return false;
  return (
    (before.length <= 128 && /^--?[\w-]+$/.test(before) && SECRET_NAMES.test(before)) ||
    (/^(?:-u|--user|--proxy-user)$/.test(before) && value.includes(":"))
  );
}

/** The same for anything that JSON can say; fields with secret names lose their value whole. */
export function redactValue(value: unknown): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((each, index) => (isBehindName(value[index - 1], each) ? REDACTED : redactValue(each)));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, SECRET_NAMES.test(name) && inner !== null ? REDACTED : redactValue(inner)]),
  );
}
