/** Who may answer questions: a caller that sends the token from a file that only the server's user can read, or a browser that such a caller opened. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { VivError } from "../../base/schema/errors.ts";

export class Approver {
  readonly #token: string;
  readonly #isPerson: (given: string) => boolean;

  /** The file is made if it is not there. `isPerson` knows what the browsers of people send who may answer. */
  constructor(file: string, isPerson: (given: string) => boolean) {
    this.#token = readToken(file);
    this.#isPerson = isPerson;
  }

  require(given: string): void {
    const [one, other] = [createHash("sha256").update(given).digest(), createHash("sha256").update(this.#token).digest()];
    if (!timingSafeEqual(one, other) && !this.#isPerson(given))
      throw new VivError("unauthorized", "Only an approver may answer.", { remedy: "Run `viv approve` on a terminal." });
  }
}

function readToken(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const token = randomBytes(32).toString("hex");
    writeFileSync(file, `${token}\n`, { mode: 0o600, flag: "wx" });
    chmodSync(file, 0o600);
    return token;
  }
}
