/** NET-4: logins of settings files are found, and the same files can be shown with placeholders in their place. */
import { describe, expect, test } from "vitest";
import { formatOf, onlyStoodIn, readLogins, type LoginFormat } from "../../src/machine/capture/logins.ts";
import { npmrc, pipConf } from "../../src/machine/capture/sanitise.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const found = (format: LoginFormat, text: string, ...beside: string[]) =>
  readLogins(format, text, beside).logins.map(({ name, host, value }) => [name, host, value]);
const standIn = (secret: string): string => `<${secret}>`;

const NPMRC = `registry=https://packages.example.com/
//registry.npmjs.org/:_authToken=npm-value
; a comment
//packages.example.com/npm/team/:_authToken = "team-value"
//old.example.com:8443/:username=me
//old.example.com:8443/:_password=${base64("pass-value")}
//old.example.com:8443/:email=me@example.com
//basic.example.com/:_auth=${base64("me:basic-value")}
//ci.example.com/:_authToken=\${CI_TOKEN}
_authToken=plain-value
save-exact=true
`;

describe("an .npmrc", () => {
  test("has tokens, passwords and logins of registries, scoped by host and path", () => {
    expect(found("npm", NPMRC)).toEqual([
      ["npm-registry.npmjs.org", "registry.npmjs.org", "npm-value"],
      ["npm-packages.example.com-npm-team", "packages.example.com", "team-value"],
      ["npm-old.example.com", "old.example.com:8443", "pass-value"],
      ["npm-basic.example.com", "basic.example.com", "basic-value"],
      ["npm-packages.example.com", "packages.example.com", "plain-value"],
    ]);
    expect(readLogins("npm", NPMRC).unusable).toMatchObject([{ reason: expect.stringContaining("variable") }]);
  });

  test("is shown with placeholders in the form that npm reads, and without what is not kept", () => {
    expect(npmrc(NPMRC, standIn)).toBe(`registry=https://packages.example.com/
//registry.npmjs.org/:_authToken=<npm-registry.npmjs.org>
//packages.example.com/npm/team/:_authToken=<npm-packages.example.com-npm-team>
//old.example.com:8443/:username=me
//old.example.com:8443/:_password=${base64("<npm-old.example.com>")}
//basic.example.com/:_auth=${base64("me:<npm-basic.example.com>")}
_authToken=<npm-packages.example.com>
save-exact=true
`);
    expect(npmrc(NPMRC, (secret) => (secret === "npm-old.example.com" ? "P" : undefined))).toBe(`registry=https://packages.example.com/
//old.example.com:8443/:username=me
//old.example.com:8443/:_password=${base64("P")}
save-exact=true
`);
    expect(npmrc(NPMRC, () => undefined)).not.toMatch(/value|username/);
  });
});

describe("a pip.conf", () => {
  const text = `[global]
index-url = https://me:pip%2Dvalue@pypi.example.com/simple
extra-index-url =
    https://one:other-value@more.example.com/simple
    https://public.example.com/simple
# https://me:comment@pypi.example.com/
proxy = http://user:proxy-value@proxy.example.com:3128
timeout = 5
`;
  test("has logins in its addresses", () => {
    expect(found("pip", text)).toEqual([
      ["pip-pypi.example.com", "pypi.example.com", "pip-value"],
      ["pip-more.example.com", "more.example.com", "other-value"],
    ]);
  });

  test("is shown with placeholders, and loses the others", () => {
    const shown = pipConf(text, (secret) => (secret === "pip-pypi.example.com" ? "P" : undefined));
    expect(shown).toContain("index-url = https://me:P@pypi.example.com/simple\n");
    expect(shown).toContain("    https://more.example.com/simple\n");
    expect(shown).not.toMatch(/-value/);
  });
});

describe("a .netrc", () => {
  const text = `# mine
machine api.example.com login me password net-value
machine files.example.com
  login "a b"
  password "quo\\"ted"
macdef init
  machine evil.example.com login x password macro

machine other.example.com password first login behind
default login anonymous password guest
`;
  test("has a login for each machine", () => {
    expect(found("netrc", text)).toEqual([
      ["netrc-api.example.com", "api.example.com", "net-value"],
      ["netrc-files.example.com", "files.example.com", 'quo"ted'],
      ["netrc-other.example.com", "other.example.com", "first"],
    ]);
    expect(readLogins("netrc", text).unusable).toMatchObject([{ reason: "it is for any host" }]);
  });

  test("is shown with placeholders alone", () => {
    expect(onlyStoodIn("netrc", text, (secret) => (secret.includes("api") ? undefined : "P"))).toBe(
      'machine files.example.com login "a b" password P\nmachine other.example.com login behind password P\n',
    );
    expect(onlyStoodIn("netrc", text, () => undefined)).toBeUndefined();
  });
});

describe("git's credentials", () => {
  const token = `ghp_${"a1B2".repeat(9)}`;
  const text = `https://me:git%40value@git.example.com/team
https://${token}:x-oauth-basic@github.com
https://${token}@forge.example.com
https://only-a-name@forge.example.com
http://me:plain@old.example.com
https://you:second@git.example.com
`;
  test("have passwords, or tokens where the user should be; a token is never part of a name", () => {
    expect(found("git", text)).toEqual([
      ["git-git.example.com", "git.example.com", "git@value"],
      ["git-github.com", "github.com", token],
      ["git-forge.example.com", "forge.example.com", token],
      ["git-git.example.com-2", "git.example.com", "second"],
    ]);
    const { logins, unusable } = readLogins("git", text);
    expect(JSON.stringify([logins.map(({ name, what }) => [name, what]), unusable])).not.toContain(token);
    expect(unusable).toMatchObject([{ reason: expect.stringContaining("plain HTTP") }]);
  });

  test("are shown with placeholders alone", () => {
    expect(onlyStoodIn("git", text, (secret) => (secret === "git-git.example.com-2" ? undefined : "P"))).toBe(
      "https://me:P@git.example.com/team\nhttps://P:x-oauth-basic@github.com\nhttps://P@forge.example.com\n",
    );
  });
});

describe("cargo's credentials", () => {
  const text = `[registry]\ntoken = "crates-value"\n\n[registries.mine]\ntoken = 'mine-value'\n[registries."far"]\ntoken = "far-value" # there\n`;
  const config = `[registries.mine]\nindex = "sparse+https://cargo.example.com/index/"\n[build]\njobs = 2\n`;
  test("have tokens in every form that TOML has", () => {
    const forms =
      'registry = { token = "crates-value" }\nregistries.mine.token = \'mine-value\' # old-value\n[registries.x.y]\ntoken = "no"\n';
    expect(found("cargo", forms, "no TOML", 'registries.mine = { index = "https://cargo.example.com/i" }')).toEqual([
      ["cargo-crates-io", "crates.io", "crates-value"],
      ["cargo-mine", "cargo.example.com", "mine-value"],
    ]);
    expect(onlyStoodIn("cargo", forms, () => "P")).toBe('[registry]\ntoken = "P"\n[registries."mine"]\ntoken = "P"\n');
  });

  test("have tokens, whose hosts stand in its config", () => {
    expect(found("cargo", text, config)).toEqual([
      ["cargo-crates-io", "crates.io", "crates-value"],
      ["cargo-mine", "cargo.example.com", "mine-value"],
      ["cargo-far", "", "far-value"],
    ]);
  });

  test("are shown with placeholders alone", () => {
    expect(onlyStoodIn("cargo", text, (secret) => (secret === "cargo-far" ? undefined : "P"))).toBe(
      '[registry]\ntoken = "P"\n[registries."mine"]\ntoken = "P"\n',
    );
  });
});

test("a line in which something else looks secret is not shown", () => {
  const token = `ghp_${"a1B2".repeat(9)}`;
  expect(onlyStoodIn("git", `https://me:pass@git.example.com/${token}\n`, standIn)).toBeUndefined();
  expect(pipConf(`[global]\nindex-url = https://me:pass@pypi.example.com/${token}\n`, standIn)).toBe("[global]\n");
  expect(npmrc(`//r.example.com/:_authToken=abc ; ${token}\nfund=false`, standIn)).toBe(
    "//r.example.com/:_authToken=<npm-r.example.com>\nfund=false\n",
  );
});

test("files are known by their names", () => {
  const known = ["~/.npmrc", "/etc/npmrc", "~/.netrc", "~/.config/pip/pip.conf", "~/.git-credentials", "~/.config/git/credentials"];
  expect(known.map(formatOf)).toEqual(["npm", "npm", "netrc", "pip", "git", "git"]);
  expect(["~/.cargo/credentials.toml", "~/.cargo/credentials", "~/.aws/credentials", "~/notes.txt"].map(formatOf)).toEqual([
    "cargo",
    "cargo",
    undefined,
    undefined,
  ]);
});

describe("logins as people write them", () => {
  test("in single quotes, and with a comment behind, which is not shown", () => {
    const text = "//a.example.com/:_authToken='quoted-value'\n//b.example.com/:_authToken=new-value # was old-value\n";
    expect(found("npm", text).map(([, , value]) => value)).toEqual(["quoted-value", "new-value"]);
    expect(npmrc(text, standIn)).toBe("//a.example.com/:_authToken=<npm-a.example.com>\n//b.example.com/:_authToken=<npm-b.example.com>\n");
  });

  test("SC-10: of a password with an @ no part is taken for the host and named", () => {
    const text = "https://me:first@second@git.example.com\n";
    expect(found("git", text)).toEqual([["git-git.example.com", "git.example.com", "first@second"]]);
    expect(JSON.stringify(readLogins("git", text).logins.map(({ what }) => what))).not.toContain("second");
    expect(onlyStoodIn("git", text, standIn)).toBe("https://me:<git-git.example.com>@git.example.com\n");
  });
});
