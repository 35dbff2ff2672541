/** Texts that look like a secret: promotions stop at them, records leave them out. */
export interface SecretPattern {
  readonly pattern: RegExp;
  readonly what: string;
}

export const SECRETS: readonly SecretPattern[] = [
  { pattern: /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----/, what: "a private key" },
  { pattern: /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/, what: "an access key of AWS" },
  { pattern: /\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_[A-Za-z0-9_]{40,}\b/, what: "a token of GitHub" },
  { pattern: /\bglpat-[A-Za-z0-9_-]{20,}\b/, what: "a token of GitLab" },
  { pattern: /\bnpm_[A-Za-z0-9]{36}\b|:_authToken\s*=\s*(?!\$)[^\s$]{8,}/, what: "a token of npm" },
  { pattern: /\bxox[abeprs]-[A-Za-z0-9-]{10,}/, what: "a token of Slack" },
  { pattern: /\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{32,}/, what: "a key of a model provider" },
  { pattern: /\bAIza[0-9A-Za-z_-]{35}\b/, what: "a key of Google" },
  { pattern: /\b(?:sk|rk)_live_[0-9a-zA-Z]{20,}\b/, what: "a key of Stripe" },
  { pattern: /\bhf_[A-Za-z0-9]{30,}\b/, what: "a token of Hugging Face" },
  {
    pattern: /\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@'"<>]+:(?!\$|<|\*|x{3}|password@|pass@|secret@)[^\s/@'"<>]{6,}@[\w.-]+/i,
    what: "a login in an address",
  },
  { pattern: /^\s*machine\s+\S+\s+login\s+\S+\s+password\s+\S+/m, what: "a login of .netrc" },
];

/** Names of variables and fields whose value is nobody's business. */
const SECRET_NAMES = /(?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|private[-_]?key|credential|authorization|bearer|session|cookie)/i;
/** `--token value`, `TOKEN=value`, `Authorization: Bearer value`. */
const ASSIGNED = new RegExp(`(${SECRET_NAMES.source}[\\w-]*["']?\\s*(?:[=:]|\\s)\\s*(?:bearer |basic )?["']?)([^\\s"'&;|]{4,})`, "gi");

export const REDACTED = "[redacted]";

const EVERYWHERE = SECRETS.map(({ pattern }) => new RegExp(pattern.source, `${pattern.flags.replace("g", "")}g`));
/** `-u name:value` of curl and others, `sshpass -p value`. */
const LOGINS = /((?:^|\s)(?:-u|--user|--proxy-user)[=\s]?["']?[^\s:"']+:|\bsshpass\s+-p\s*["']?)[^\s"']+/g;

/** The text without what looks secret in it. */
export function redact(text: string): string {
  if (text.length < 8) return text;
  const known = EVERYWHERE.reduce((rest, pattern) => rest.replace(pattern, REDACTED), text).replace(LOGINS, `$1${REDACTED}`);
  return known.replace(ASSIGNED, (_, before: string) => `${before}${REDACTED}`);
}

/** The same for anything that JSON can say; fields with secret names lose their value whole. */
export function redactValue(value: unknown): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map(redactValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, SECRET_NAMES.test(name) && inner !== null ? REDACTED : redactValue(inner)]),
  );
}
