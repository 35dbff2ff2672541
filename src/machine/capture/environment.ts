/** Which of the caller's environment variables a sandbox gets: all but what looks like a secret, by its name or its value, or like a door to reality. */
import { holdsLogin } from "./addresses.ts";
import { looksLikeToken, namesLogin } from "./secret-values.ts";

export interface EnvironmentRules {
  /** Names passed although they look secret. */
  readonly pass: readonly string[];
  readonly set: Readonly<Record<string, string>>;
  readonly drop: readonly string[];
}

export interface FilteredEnvironment {
  readonly env: Record<string, string>;
  /** Names left out, sorted. */
  readonly leftOut: string[];
}

const SECRET_NAMES = [
  /TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIAL|COOKIE|PRIVATE|BEARER|WEBHOOK/i,
  /(^|_)(PASS|PWD|PW|PAT|AUTH|JWT|PIN|DSN|SALT|SIGNATURE|CREDS?|OTP)(_|$)/i,
  /(?<!COM|BY|SUR|TRES)PASS$|(PWD|PSWD|PASSWRD|CREDS|PW)$/i,
  /AUTH(ORI[SZ]ATION)?$/i,
  /(API|ACCESS|SIGNING|ENCRYPTION|DEPLOY|SSH|GPG|MASTER|ACCOUNT|SERVICE|LICEN[SC]E|STORAGE|APP|SHARED|SUBSCRIPTION)_?KEY/i,
  /(^|_)KEY(S)?$/i,
  /SESSION(_?ID)?$/i,
  /CONNECTION_?STRING/i,
  /^npm_config_.*(auth|token|password|key|cert)/i,
];

/** Families that belong to a login or a service account. */
const SECRET_FAMILIES =
  /^(AWS|AZURE|ARM|GOOGLE|GCP|GCLOUD|CLOUDSDK|GITHUB|GH|GITLAB|CI_JOB|ANTHROPIC|CLAUDE|OPENAI|GEMINI|MISTRAL|COHERE|HF|HUGGING_?FACE|DIGITALOCEAN|CLOUDFLARE|CF|HEROKU|VERCEL|NETLIFY|FLY|STRIPE|TWILIO|SENDGRID|SLACK|DISCORD|TELEGRAM|SENTRY|DATADOG|DD|VAULT|CONSUL|NOMAD|OP|BW|TF_VAR|PULUMI|SSH|GPG|KRB5|VIV)_/i;

/** Doors to reality that do not exist inside. */
const DOORS =
  /^(SSH_AUTH_SOCK|SSH_AGENT_PID|DBUS_.*|XDG_RUNTIME_DIR|XDG_SESSION_.*|XDG_SEAT|XDG_VTNR|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|PULSE_SERVER|KUBECONFIG|KUBERNETES_.*|DOCKER_.*|CONTAINER_HOST|PODMAN_.*|BUILDKIT_HOST|TMUX|TMUX_PANE|STY|NOTIFY_SOCKET|LISTEN_FDS|LISTEN_PID|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_.*|MEMORY_PRESSURE_.*|GNOME_KEYRING_.*|VSCODE_.*|SUDO_.*|OLDPWD|LD_PRELOAD|LD_LIBRARY_PATH|LD_AUDIT|BASH_ENV|ENV|BASH_FUNC_.*|NODE_CHANNEL_FD|NODE_OPTIONS|_)$/;

/** Not secret although the name says so. */
const HARMLESS = new Set([
  "COLORTERM",
  "TERM_SESSION_ID",
  "KEYBOARD_LAYOUT",
  "AUTHOR",
  "GIT_AUTHOR_NAME",
  "GIT_AUTHOR_EMAIL",
  "PWD",
  "PASSENGER_APP_ENV",
]);

const SUSPICIOUS_NAME = /KEY|ID|CODE|CERT|HASH|SEED|LOGIN|USER|ACCOUNT|TENANT|CLIENT/i;

export function filterEnvironment(env: Readonly<Record<string, string>>, rules: EnvironmentRules): FilteredEnvironment {
  const passed: Record<string, string> = {};
  const leftOut: string[] = [];
  const pass = new Set(rules.pass);
  const drop = new Set(rules.drop);
  for (const [name, value] of Object.entries(env)) {
    if (drop.has(name) || (!pass.has(name) && looksSecret(name, value))) leftOut.push(name);
    else passed[name] = value;
  }
  for (const [name, value] of Object.entries(rules.set)) if (!drop.has(name)) passed[name] = value;
  return { env: passed, leftOut: leftOut.toSorted() };
}

export function looksSecret(name: string, value: string): boolean {
  if (DOORS.test(name)) return true;
  if (looksLikeToken(value) || namesLogin(value) || holdsLogin(value)) return true;
  if (HARMLESS.has(name)) return false;
  if (SECRET_FAMILIES.test(name) || SECRET_NAMES.some((pattern) => pattern.test(name))) return true;
  return SUSPICIOUS_NAME.test(name) && looksRandom(value);
}

/** Long and without the repetition of words: more than 4 bits a character. */
function looksRandom(value: string): boolean {
  if (value.length < 24 || !/^[A-Za-z0-9+/=_.-]+$/.test(value) || value.startsWith("/")) return false;
  const counts = new Map<string, number>();
  for (const character of value) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / value.length) * Math.log2(count / value.length);
  return bits > (/^[0-9a-f]+$/i.test(value) ? 3 : 4);
}
