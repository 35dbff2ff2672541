import { describe, expect, test } from "vitest";
import { filterEnvironment } from "../../src/machine/capture/environment.ts";

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
    ["BYPASS", "1"],
    ["PATH", "/opt/homebrew/opt/openssl@3/bin:/home/me/.nvm/v20@lts/bin:/usr/bin"],
    ["MANPATH", ":/opt/x@1/man"],
    ["LS_COLORS", "rs=0:di=01;34:ln=01;36:*.tar=01;31:*.key=00;36"],
    ["GIT_COMMIT", "4f3c2b1a9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a"],
    ["REPO", "ssh://git@git.example.org/team/x.git"],
    ["REMOTE", "git@git.example.org:team/x.git"],
    ["DOCS", "http://localhost:8080/packages/@scope/name"],
    ["HOMEPAGE", "https://example.org/@me"],
    ["CFLAGS", "-O2 -DNAME=value -I/usr/include"],
    ["JAVA_OPTS", "-Xmx1g -Dfile.encoding=UTF-8"],
    ["MESSAGE", "the password is asked for"],
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
    ["PGPASS", "x"],
    ["dbpass", "x"],
    ["MYAPP_PW", "x"],
    ["DBPW", "x"],
    ["MYSQLPWD", "x"],
    ["DB_CREDS", "x"],
    ["DB", "Server=db;Database=x;User Id=sa;Password=x y;"],
    ["DB", "server=db;uid=sa;pwd=x"],
    ["DB", "host=db user=me password=x sslmode=require"],
    ["DB", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=eHh4eA==;EndpointSuffix=core.windows.net"],
    ["BUS", "Endpoint=sb://x.example.org/;SharedAccessKeyName=n;SharedAccessKey=eHh4eA="],
    ["DB", "me:word@tcp(127.0.0.1:3306)/db"],
    ["DB", "me:word@db.example.org:5432/x"],
    ["DB", "jdbc:postgresql://db/x?user=me&password=x"],
    ["DB", "postgres://me:wo/rd@db/x"],
    ["DB", "postgres://me:wo@rd@db/x"],
    ["DB", "mongodb://me:word@one:27017,two:27017/x"],
    ["CACHE", "redis://:word@localhost:6379/0"],
    ["SETTINGS", '{"user":"me","password":"x"}'],
    ["SETTINGS", "client_secret: x"],
    ["BLOB", "https://x.example.org/y?sv=1&sig=abc%3D"],
    ["JAVA_OPTS", "-Djavax.net.ssl.trustStorePassword=changeit"],
    ["HOOK", `SG.${"a".repeat(22)}.${"b".repeat(40)}`],
    ["BOT", `123456789:AA${"b".repeat(33)}`],
    ["GL", `glrt-${"a1".repeat(10)}`],
    ["REGISTRY", `x=dckr_pat_${"a1".repeat(14)}`],
  ])("leaves %s out", (name, value) => {
    expect(filterEnvironment({ [name]: value }, NO_RULES)).toEqual({ env: {}, leftOut: [name] });
  });

  test("a value is looked at in a time that follows its length", () => {
    const began = performance.now();
    for (const part of ["a", ":", "eyJ", "a:", "://", "a@", "password", "x=", "http:/", "sk-", "1"]) {
      filterEnvironment({ X: part.repeat(100_000) }, NO_RULES);
    }
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  test("the config passes, sets and drops by name, and drop wins", () => {
    const rules = { pass: ["API_TOKEN", "BOTH"], set: { MODE: "clone", BOTH: "set" }, drop: ["EDITOR", "BOTH"] };
    const { env, leftOut } = filterEnvironment({ API_TOKEN: "t", EDITOR: "vi", BOTH: "given", OTHER_TOKEN: "t" }, rules);
    expect(env).toEqual({ API_TOKEN: "t", MODE: "clone" });
    expect(leftOut).toEqual(["BOTH", "EDITOR", "OTHER_TOKEN"]);
  });
});
