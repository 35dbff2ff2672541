/**
 * Lines of a project's config that run on the real machine, and the files of the project that they name or run: what such a line does
 * is what these files hold, so trust is for them, too. Files are found by their names in the lines and in the programs among them;
 * a name that a program puts together while it runs is not found.
 */
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, realpathSync, statSync, type Stats } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import type { ProjectConfig } from "../schema/config.ts";

export interface HostLines {
  /** Of the files' content; null where no line runs on the machine. */
  readonly hash: string | null;
  /** Files that are there, relative to the project. */
  readonly files: readonly string[];
  /** These, others that would count if they were there, and the folders above. */
  readonly names: ReadonlySet<string>;
}

const MOST_FILES = 256;
/** Names of one folder. */
const MOST_LISTED = 20_000;
/** Words between an interpreter and the file it runs. */
const MOST_OPTIONS = 64;
const MOST_LOOKS = 10_000;
const MOST_FOLDERS = 16;
const MOST_BYTES = 1024 ** 2;
const MOST_CHARACTERS = 512;
const MOST_WORDS = 2048;
/** What separates words in a line, also within quotes: over-reading finds more files, never fewer. */
const BETWEEN = /[\s;|&()<>`$"'{}=,]+/;
/** Files that a line writes are its result and need no trust. */
const WRITTEN = /\d*>>?\s*[^\s;|&<>()]+/g;
const PROGRAM = /\.(sh|bash|zsh|fish|py|rb|pl|php|lua|js|cjs|mjs|ts|cts|mts|mk|sql)$/i;
/** Files that steer a program which is given them. */
const STEERS =
  /\.(ya?ml|json|jsonc|toml|tf|tfvars|hcl|conf|cfg|ini|env|properties|service|gradle|kts|xml|ninja|cue|nix)$|(^|\/)(\.env[^/]*|[A-Z][a-z]+file)$/;
/** Programs that run the file named after them, whatever its name. */
const SHELL = /^(\.|source|exec|env|sudo|nohup|time|xargs|sh|bash|dash|zsh|ksh|fish|busybox)$/;
/** Programs that also add the extension to its name. */
const INTERPRETER = /^(-m|-r|--require|--import|node|deno|bun|tsx|ts-node|python[\d.]*|ruby|perl|php|require|import|from)$/;
const ENDINGS = [".js", ".cjs", ".mjs", ".ts", ".sh", ".py", "/index.js", "/index.ts", "/__main__.py"];
/** Files that a program reads without being told. */
const READ_BY: Readonly<Record<string, readonly string[]>> = {
  make: ["GNUmakefile", "makefile", "Makefile"],
  gmake: ["GNUmakefile", "makefile", "Makefile"],
  just: ["justfile", "Justfile", ".justfile"],
  task: ["Taskfile.yml", "Taskfile.yaml"],
  rake: ["Rakefile", "rakefile"],
  cap: ["Capfile", "config/deploy.rb"],
  fab: ["fabfile.py"],
  invoke: ["tasks.py"],
  docker: ["Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"],
  "docker-compose": ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"],
  podman: ["Containerfile", "Dockerfile", "compose.yaml", "docker-compose.yml"],
  ansible: ["ansible.cfg"],
  "ansible-playbook": ["ansible.cfg"],
};
const PACKAGE_RUNNERS = new Set(["npm", "pnpm", "yarn", "bun", "npx"]);

export function hostLines(project: string, config: ProjectConfig): HostLines {
  const lines = linesOf(config);
  if (lines.length === 0) return { hash: null, files: [], names: new Set() };
  const search = new Search(project);
  for (const line of lines) search.readLine(line, project);
  return search.result();
}

export function linesOf({ services, stages = [], automations }: ProjectConfig): string[] {
  const takes = Object.values(services).flatMap(({ take }) => take ?? []);
  const reality = Object.values(automations).flatMap((spec) => spec.reality);
  return [...takes, ...stages.flatMap(stageLines), ...reality];
}

function stageLines({ apply, after, checks = [], rollback }: NonNullable<ProjectConfig["stages"]>[number]): string[] {
  const run = typeof apply === "object" && "run" in apply ? [apply.run] : [];
  return [...run, ...after, ...(apply === "verify" || apply === "branch" ? [] : checks), ...(rollback === undefined ? [] : [rollback])];
}

class Search {
  readonly #project: string;
  /** Content by path. */
  readonly #found = new Map<string, string>();
  /** For files above the size that is read: name, size, time, inode, mode. */
  readonly #rest = new Set<string>();
  readonly #listed = new Set<string>();
  readonly #scripts = new Map<string, Record<string, unknown>>();
  readonly #names = new Set<string>();
  #looks = 0;

  constructor(project: string) {
    this.#project = project;
  }

  result(): HostLines {
    const files = [...this.#found].toSorted(([one], [other]) => (one < other ? -1 : 1));
    const all = this.#rest.size === 0 ? files : [files, [...this.#rest].toSorted()];
    const hash = createHash("sha256").update(JSON.stringify(all)).digest("hex");
    return { hash, files: files.map(([path]) => path), names: this.#names };
  }

  /** Every file that a line names, and what its programs read. */
  readLine(line: string, from: string): void {
    const words = line.replace(WRITTEN, " ").split(BETWEEN, MOST_WORDS);
    const named = words.map((word) => resolve(from, word)).filter((path) => this.#mayLook(path) && isFolder(path));
    const folders = [from, ...named].slice(0, MOST_FOLDERS);
    for (const [index, word] of words.entries()) {
      if (this.#looks >= MOST_LOOKS) return;
      const read = Object.hasOwn(READ_BY, word) ? (READ_BY[word] ?? []) : [];
      const isRun = isRunBy(words.slice(Math.max(0, index - MOST_OPTIONS), index));
      const scripts = PACKAGE_RUNNERS.has(word) ? words.slice(index + 1, index + 4) : [];
      for (const folder of folders) {
        for (const name of spellings(word, words[index - 1])) this.#look(resolve(folder, name), isRun);
        for (const name of read) this.#look(resolve(folder, name), true);
        for (const script of scripts) this.#packageScript(folder, script);
      }
    }
  }

  /** A file that is run or could be; of a folder or a pattern, the programs. */
  #look(path: string, isRun: boolean): void {
    if (!this.#mayLook(path)) return;
    const isPattern = /[*?[]/.test(path);
    const folder = isPattern ? dirname(path) : path;
    if (!isPattern && !isFolder(path)) {
      if (isRun || STEERS.test(path) || isProgram(path)) this.#add(path);
      return;
    }
    if (folder === this.#project || this.#listed.has(folder)) return;
    this.#listed.add(folder);
    for (const name of namesIn(folder)) if (isProgram(join(folder, name))) this.#add(join(folder, name));
  }

  #add(path: string): void {
    const name = relative(this.#project, path);
    for (let at = name; at !== "." && !this.#names.has(at); at = dirname(at)) this.#names.add(at);
    if (this.#found.has(name)) return;
    if (this.#found.size >= MOST_FILES) {
      // Too many to be read: they count as they were last written.
      const stats = statSafely(path);
      this.#rest.add(`${name} ${stats?.size} ${stats?.mtimeMs} ${stats?.ino} ${stats?.mode}`);
      return;
    }
    const content = contentOf(path, this.#project);
    if (content === undefined) return;
    this.#found.set(name, content.digest);
    if (content.text !== undefined) this.#readProgram(content.text, path);
  }

  /** What a program names: other programs, from its own folder or the project's. */
  #readProgram(text: string, path: string): void {
    if (this.#looks >= MOST_LOOKS) return;
    const words = text.split(BETWEEN, MOST_WORDS);
    for (const [index, word] of words.entries()) {
      if (this.#looks >= MOST_LOOKS) return;
      if (!/[./]/.test(word) || word.length > MOST_CHARACTERS) continue;
      for (const folder of new Set([this.#project, dirname(path)]))
        for (const name of spellings(word, words[index - 1])) {
          const at = resolve(folder, name);
          if (this.#mayLook(at) && isProgram(at)) this.#add(at);
        }
    }
  }

  /** A script of package.json, as what comes before and after it; the rest of the file is not run. */
  #packageScript(folder: string, script: string): void {
    const path = join(folder, "package.json");
    const scripts = this.#scriptsOf(path);
    for (const name of [`pre${script}`, script, `post${script}`]) {
      const line = Object.hasOwn(scripts, name) ? scripts[name] : undefined;
      const key = `${relative(this.#project, path)}#${name}`;
      if (typeof line !== "string" || this.#found.has(key) || this.#found.size >= MOST_FILES) continue;
      this.#found.set(key, line);
      this.readLine(line, folder);
    }
  }

  /** Read once: many lines may name scripts of one file. */
  #scriptsOf(path: string): Record<string, unknown> {
    const known = this.#scripts.get(path);
    if (known !== undefined) return known;
    const text = this.#mayLook(path) ? contentOf(path, this.#project)?.text : undefined;
    const scripts = text === undefined ? {} : scriptsIn(text);
    this.#scripts.set(path, scripts);
    return scripts;
  }

  /** How many places are looked at: hostile files must not keep the server busy. */
  #mayLook(path: string): boolean {
    if (!this.#isInside(path)) return false;
    this.#looks += 1;
    return this.#looks <= MOST_LOOKS;
  }

  #isInside(path: string): boolean {
    return path !== this.#project && path.startsWith(`${this.#project}/`);
  }
}

/** As it stands, below a variable, and as an interpreter completes it. */
function spellings(word: string, before = ""): string[] {
  const below = /^[^/]*\/(.+)/.exec(word)?.[1];
  const completed =
    word.startsWith("./") || word.startsWith("../") || INTERPRETER.test(before) ? ENDINGS.map((ending) => `${word}${ending}`) : [];
  return [word, ...(below === undefined ? [] : [below]), ...completed];
}

/** Whether the last word before that is no option runs what follows. */
function isRunBy(before: readonly string[]): boolean {
  const last = before.findLast((word) => word !== "" && !/^-./.test(word)) ?? "";
  return SHELL.test(last) || INTERPRETER.test(last);
}

function isFolder(path: string): boolean {
  return statSafely(path)?.isDirectory() === true;
}

/** By its name, or since it may be run. */
function isProgram(path: string): boolean {
  const stats = PROGRAM.test(path) ? undefined : statSafely(path);
  return stats === undefined ? PROGRAM.test(path) : stats.isFile() && (stats.mode & 0o111) !== 0;
}

function statSafely(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // A name that is too long, a loop of links, a folder that is closed: nothing that a line could run either.
    return undefined;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted().slice(0, MOST_LISTED);
  } catch {
    return [];
  }
}

/** Links within the project are followed, as the line would; what is no regular file is nothing. */
function contentOf(path: string, project: string): { readonly digest: string; readonly text?: string } | undefined {
  if (statSafely(path)?.isFile() !== true) return undefined;
  let descriptor: number;
  try {
    const real = realpathSync(path);
    // No promotion changes what is outside; only where the link leads counts.
    if (!real.startsWith(`${realpathSync(project)}/`)) return { digest: `outside ${real}` };
    descriptor = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    return { digest: "closed" };
  }
  try {
    const stats = fstatSync(descriptor);
    // A larger file is no script: it counts by size and time, not by content.
    if (stats.size > MOST_BYTES) return { digest: `${stats.size} ${stats.mtimeMs} ${stats.ino}` };
    const bytes = readFileSync(descriptor);
    const digest = createHash("sha256").update(bytes).digest("hex");
    return bytes.includes(0) ? { digest } : { digest, text: bytes.toString() };
  } finally {
    closeSync(descriptor);
  }
}

function scriptsIn(text: string): Record<string, unknown> {
  try {
    const { scripts } = JSON.parse(text) as { scripts?: Record<string, unknown> };
    return typeof scripts === "object" && scripts !== null ? scripts : {};
  } catch {
    return {};
  }
}
