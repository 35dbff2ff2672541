/** Programs made of native/ for tests. Compiling takes seconds: each is made once, and again when a source or its command changes. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT } from "./compiled.ts";

const NATIVE = join(CHECKOUT, "native");
const MADE = join(CHECKOUT, ".cache/native");

/** The program that a shell line, run in native/, writes to `$OUT`. It stays for later runs of the tests. */
export function nativeProgram(name: string, line: string): string {
  const hash = createHash("sha256").update(line);
  for (const file of globSync("**/*.[ch]", { cwd: NATIVE }).toSorted()) hash.update(`${file}\0`).update(readFileSync(join(NATIVE, file)));
  const program = join(MADE, `${name}-${hash.digest("hex").slice(0, 16)}`);
  mkdirSync(MADE, { recursive: true });
  // Several files of tests need the same program at once: the first one makes it, the others wait.
  const make = `[ -x "$1" ] || { rm -f ${name}-*; cd "$2"; ${line}; mv "$OUT" "$1"; }`;
  execFileSync("flock", [join(MADE, `${name}.lock`), "sh", "-ec", make, "sh", program, NATIVE], {
    cwd: MADE,
    env: { ...process.env, OUT: `${program}.new` },
    stdio: "pipe",
  });
  return program;
}

/** A program with the address and undefined-behaviour sanitizers, of files of native/ that patterns of the shell name. */
export function sanitizedProgram(name: string, files: string, defines = ""): string {
  const checks = "-fsanitize=address,undefined -fno-sanitize-recover=all";
  return nativeProgram(name, `cc -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -g -O1 ${checks} ${defines} -o "$OUT" ${files}`);
}
