/** Home folders full of secrets that mark themselves, so that a scan from inside can look for them. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Unique in every run, and written in pieces nowhere else. */
export const CANARY = `viv-canary-${process.pid}-${Math.random().toString(36).slice(2)}`;

const SECRETS = [
  ".ssh/id_ed25519",
  ".ssh/config",
  ".aws/credentials",
  ".netrc",
  ".git-credentials",
  ".bash_history",
  ".config/gh/hosts.yml",
  ".docker/config.json",
  ".kube/config",
  ".gnupg/private-keys-v1.d/key",
  ".mozilla/firefox/x.default/logins.json",
  ".config/chromium/Default/Cookies",
  ".config/google-chrome/Default/Login Data",
  ".claude/.credentials.json",
  ".codex/auth.json",
  ".local/share/opencode/auth.json",
  ".local/share/keyrings/login.keyring",
  ".config/gcloud/credentials.db",
  ".pypirc",
  ".cargo/credentials.toml",
  ".npm/_logs/debug.log",
  ".terraform.d/credentials.tfrc.json",
  ".env",
  "notes.txt",
  "other-project/.env",
];

export interface Home {
  readonly path: string;
  /** How many files hold the canary. */
  readonly secrets: number;
  remove(): void;
}

/** A throw-away home folder below /home, with toolchains that should be seen and secrets that should not. */
export function plantHome(): Home {
  mkdirSync("/home", { recursive: true });
  const path = mkdtempSync("/home/viv-test-");
  const put = (name: string, content: string): void => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  };
  for (const name of SECRETS) put(name, `secret=${CANARY}\n`);
  put(
    ".npmrc",
    `registry=https://packages.example.com/\n//packages.example.com/:_authToken=${CANARY}\nsave-exact=true\n_password=${CANARY}\n`,
  );
  put(
    ".gitconfig",
    `[user]\n\tname = Someone\n[credential]\n\thelper = "!echo ${CANARY}"\n[url "https://user:${CANARY}@example.com/"]\n\tinsteadOf = x\n`,
  );
  put(".nvm/versions/tool", "a tool\n");
  put(".cargo/bin/tool", "a tool\n");
  return { path, secrets: SECRETS.length + 2, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A shell line that lists every readable place with the canary. All of them are minutes old, which spares most of the reading. */
export function scanFor(places: readonly string[]): string {
  const files = `find ${places.join(" ")} -type f -mmin -10 -exec grep -lF -e '${CANARY}' {} +`;
  return `{ ${files}; grep -lF -e '${CANARY}' /proc/[0-9]*/environ; } 2>/dev/null | sort -u`;
}

/** Every file of a state folder that holds the text. */
export function holders(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => {
    const path = join(folder, name);
    try {
      // Volumes are looked through from inside.
      return statSync(path).isFile() && statSync(path).size < 64 * 1024 ** 2 && readFileSync(path).includes(text);
    } catch {
      return false;
    }
  });
}
