/** Words that mean about the same to people who write programs. A word may belong to several. */
import { stem } from "./words.ts";

const GROUPS = [
  "fail failure failing error broken break crash exception bug wrong red defect fault issue problem regression",
  "test check spec assertion verify suite verification unittest",
  "fix repair correct resolve patch mend solve cure",
  "delete remove drop erase unlink purge discard cleanup",
  "create make add new insert generate introduce",
  "change modify edit update alter rewrite adjust",
  "slow performance latency lag sluggish speed fast quick throughput optimize faster bottleneck p95",
  "login auth authentication authenticate signin credential password logon",
  "database db sql sqlite postgres query table schema migration",
  "install dependency package npm pip module library",
  "network http request connection socket proxy internet offline fetch",
  "timeout deadline expire hang stuck wait late",
  "config configuration setting option preference environment variable",
  "start launch boot begin run execute spawn startup",
  "stop kill end terminate quit abort cancel shutdown halt",
  "memory ram heap leak oom allocation",
  "file folder directory path",
  "disk storage space full enospc",
  "ask question approve permission approval confirm allow",
  "user person human customer account",
  "log output print trace console stdout",
  "docs documentation readme guide comment manual",
  "deploy release publish ship rollout production",
  "merge conflict rebase branch commit git",
  "cost price budget spend dollar expensive money bill payment invoice",
  "undo revert rollback restore",
  "twice duplicate double repeated",
  "key token secret credential leaked revoke",
  "flaky intermittent sporadic sometimes random nondeterministic",
  "date time timezone clock hour day utc calendar",
  "ui page button screen css style layout colour color interface frontend website",
  "security vulnerability secret attack injection xss exploit unsafe",
  "retry again repeat loop attempt try",
  "search find lookup grep locate",
  "unicode utf8 encoding charset character umlaut emoji",
  "race deadlock lock concurrent concurrency parallel thread mutex simultaneous",
  "cache memoize stale invalidate cached",
  "number integer float rounding decimal precision arithmetic calculation sum total",
  "rename refactor move restructure extract tidy",
  "email mail message notify notification send",
  "version upgrade downgrade bump compatible",
  "type typescript compile compiler typecheck tsc",
  "decide decision choose choice agree",
] as const;

/** Two words that mean one thing, which neither means alone. */
const PAIRS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:log|sign)(?:s|ging|ged|ing|ed)? (?:in|on)\b/gi, "login"],
  [/\bout of memory\b/gi, "oom memory"],
  [/\b(?:no|out of) (?:disk )?(?:space|storage)\b/gi, "full disk"],
  [/\brun(?:s|ning)? out\b|\bran out\b/gi, "expire"],
  [/\broll(?:s|ed|ing)? back\b/gi, "undo"],
];

export function joined(text: string): string {
  return PAIRS.reduce((changed, [pair, word]) => changed.replace(pair, word), text);
}

/** Numbers of the groups, by the stem of a word. */
const BY_STEM = new Map<string, number[]>();
for (const [number, group] of GROUPS.entries())
  for (const word of group.split(" ")) {
    const key = stem(word);
    const numbers = BY_STEM.get(key) ?? [];
    if (!numbers.includes(number)) BY_STEM.set(key, [...numbers, number]);
  }

export function conceptsOf(stemmed: string): readonly number[] {
  return BY_STEM.get(stemmed) ?? [];
}
