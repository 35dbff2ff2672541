import { describe, expect, test } from "vitest";
import { filterEnvironment } from "../../src/capture/environment.ts";

const NO_RULES = { pass: [], set: {}, drop: [] };
const jwt = `eyJ${"a".repeat(20)}.eyJ${"b".repeat(20)}.c`;

describe("the environment of a sandbox", () => {
  test.each([
    ["PATH", "/usr/bin:/bin"],
    ["HOME", "/home/me"],
    ["LANG", "C.UTF-8"],
    ["PWD", "/work"],
    ["TERM", "xterm-256color"],
    ["EDITOR", "vi"],
    ["NODE_ENV", "test"],
    ["GIT_AUTHOR_NAME", "A"],
    ["DATABASE_HOST", "localhost"],
    ["HTTP_PROXY", "http://proxy.example.org:3128"],
    ["MONKEY", "banana"],
    ["KEYBOARD_LAYOUT", "de"],
    ["BUILD_ID", "1234"],
    ["JAVA_HOME", "/usr/lib/jvm/java-17-openjdk-amd64"],
    ["npm_config_registry", "https://registry.example.org"],
    ["PORT", "8080"],
    ["COMPASS", "north"],
  ])("keeps %s", (name, value) => {
    expect(filterEnvironment({ [name]: value }, NO_RULES)).toEqual({ env: { [name]: value }, leftOut: [] });
  });

  test.each([
    ["GITHUB_TOKEN", "x"],
    ["MY_SECRET", "x"],
    ["DB_PASSWORD", "x"],
    ["PGPASSWORD", "x"],
    ["STRIPE_API_KEY", "x"],
    ["AWS_REGION", "x"],
    ["ANTHROPIC_MODEL", "x"],
    ["OPENAI_KEY", "x"],
    ["SSH_AUTH_SOCK", "/tmp/agent"],
    ["DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus"],
    ["XDG_RUNTIME_DIR", "/run/user/0"],
    ["DISPLAY", ":0"],
    ["WAYLAND_DISPLAY", "wayland-0"],
    ["KUBECONFIG", "/x"],
    ["DOCKER_HOST", "unix:///x"],
    ["VIV_HOME", "/x"],
    ["SESSION_ID", "x"],
    ["AUTH", "x"],
    ["npm_config__authToken", "x"],
    ["LD_PRELOAD", "/x.so"],
    ["HTTPS_PROXY", "http://me:word@proxy.example.org"],
    ["DATABASE_URL", "postgres://u:p@localhost/db"],
    ["FOO", `ghp_${"a".repeat(36)}`],
    ["BAR", "sk-ant-api03-abcdefghijklmnop"],
    ["BAZ", "AKIAABCDEFGHIJKLMNOP"],
    ["QUX", jwt],
    ["CERTIFICATE", "-----BEGIN RSA PRIVATE KEY-----\nx"],
    ["CLIENT_ID", "aZ3kP9qLmN7vXc2bT8wYrE5u"],
    ["HEADER", "Bearer abcdefghijklmnop"],
  ])("leaves %s out", (name, value) => {
    expect(filterEnvironment({ [name]: value }, NO_RULES)).toEqual({ env: {}, leftOut: [name] });
  });

  test("the config passes, sets and drops by name, and drop wins", () => {
    const rules = { pass: ["API_TOKEN", "BOTH"], set: { MODE: "clone", BOTH: "set" }, drop: ["EDITOR", "BOTH"] };
    const { env, leftOut } = filterEnvironment({ API_TOKEN: "t", EDITOR: "vi", BOTH: "given", OTHER_TOKEN: "t" }, rules);
    expect(env).toEqual({ API_TOKEN: "t", MODE: "clone" });
    expect(leftOut).toEqual(["BOTH", "EDITOR", "OTHER_TOKEN"]);
  });
});
