/** Certificates that sign themselves, made on the spot. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";

const KEY = "req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:P-256".split(" ");

export interface Certificate {
  readonly key: Buffer;
  readonly cert: Buffer;
  /** Where the certificate lies, for a program that is to trust it. */
  readonly file: string;
}

/** For these names or addresses, in files of a folder. */
export function certificate(folder: string, name: string, ...more: readonly string[]): Certificate {
  const [keyFile, file] = [join(folder, `${name}.key`), join(folder, `${name}.crt`)];
  const names = [name, ...more].map((each) => `${isIP(each) === 0 ? "DNS" : "IP"}:${each}`).join(",");
  const words = [...KEY, "-keyout", keyFile, "-out", file, "-subj", `/CN=${name}`, "-addext", `subjectAltName=${names}`];
  execFileSync("openssl", words, { stdio: "pipe" });
  return { key: readFileSync(keyFile), cert: readFileSync(file), file };
}
