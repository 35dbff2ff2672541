/**
 * Variables that send programs inside through the proxy. None is needed to get out, since names lead there by themselves; a
 * program that speaks to the proxy is told in words why it was refused. What has a price, as a line that each JVM prints, is left out.
 */
import { PROXY_PORT, type NetworkRules, type PrivateHost } from "../../base/schema/network.ts";

const PROXY = `http://127.0.0.1:${PROXY_PORT}`;
/** 0.0.0.0 is what many servers say they listen on. */
const LOCAL = "localhost,127.0.0.1,::1,0.0.0.0";
/** Names under these exist nowhere outside: asked for directly, they fail as names that don't exist, and not with an answer of the proxy. */
const NOWHERE = ["invalid", "localhost", "local", "test"];
/** Where people have remotes by SSH, which has no way out: the same repositories are there by HTTPS. */
const FORGES = ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org"];

export function proxyEnvironment(
  rules: NetworkRules | undefined,
  present: Readonly<Record<string, string>>,
  opened: readonly PrivateHost[] = [],
): Readonly<Record<string, string>> {
  if (rules === undefined || rules.mode === "off" || rules.variables === false) return {};
  const nowhere = namesOfNowhere(rules, opened);
  const isUsual = nowhere.length === NOWHERE.length && rules.allow.length === 0 && present["GIT_CONFIG_COUNT"] === undefined;
  // Every command gets them, and most get the same.
  return isUsual ? (usual ??= made(rules, present, nowhere)) : made(rules, present, nowhere);
}

let usual: Record<string, string> | undefined;

function made(rules: NetworkRules, present: Readonly<Record<string, string>>, nowhere: readonly string[]): Record<string, string> {
  const variables: Record<string, string> = { NODE_USE_ENV_PROXY: "1" };
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) variables[name] = variables[name.toLowerCase()] = PROXY;
  variables["NO_PROXY"] = variables["no_proxy"] = [LOCAL, ...nowhere.map((name) => `.${name}`)].join(",");
  return { ...variables, ...git(rules, present) };
}

/** Those of which no rule speaks. With a list of hosts, the proxy says that they are not on it. */
function namesOfNowhere({ mode, allow, production }: NetworkRules, opened: readonly PrivateHost[]): string[] {
  const named = [...allow.map(({ host }) => host), ...opened.map(({ host }) => host), ...production];
  return mode === "public" ? NOWHERE.filter((name) => !named.some((host) => host.endsWith(`.${name}`))) : [];
}

/** Behind the settings that are there already. */
function git(rules: NetworkRules, present: Readonly<Record<string, string>>): Record<string, string> {
  const hosts = new Set([
    ...FORGES,
    ...rules.allow.filter(({ host, tcp }) => !tcp && /[a-z]$/.test(host) && !host.startsWith("*")).map(({ host }) => host),
  ]);
  const first = /^\d{1,4}$/.test(present["GIT_CONFIG_COUNT"] ?? "") ? Number(present["GIT_CONFIG_COUNT"]) : 0;
  const settings = [...hosts].flatMap((host) =>
    [`git@${host}:`, `ssh://git@${host}/`].map((from) => [`url.https://${host}/.insteadOf`, from] as const),
  );
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(first + settings.length) };
  for (const [index, [key, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${first + index}`] = key;
    variables[`GIT_CONFIG_VALUE_${first + index}`] = value;
  }
  return variables;
}
