/** Copies of settings files, as they are inside: parsed, without logins, and not there at all where they can't be parsed. */
import { describe, expect, test } from "vitest";
import { readLogins } from "../../src/machine/capture/logins.ts";
import {
  cargoConfig,
  environmentFile,
  gitconfig,
  npmrc,
  pipConf,
  type Sanitiser,
  shadow,
  yarnrc,
} from "../../src/machine/capture/sanitise.ts";

const none = (): undefined => undefined;
const shown = (sanitiser: Sanitiser, text: string): string | undefined => sanitiser(text, none);

describe("cargo's settings", () => {
  test("keep where registries are, and lose tokens however they are written", () => {
    const index = 'index = "sparse+https://r/"';
    expect(shown(cargoConfig, `[registries.x]\n${index}\ntoken = "hidden"\n`)).toBe(`[registries.x]\n${index}\n`);
    for (const text of [
      `registries.x = { ${index}, token = "hidden" }`,
      `registries = { x = { token = "hidden", ${index} } }`,
      `registries.x.${index}\nregistries.x.token = "hidden"`,
      `[registries]\nx.token = "hidden"\nx.${index}`,
      `[registries.x]\n${index}\n"to\\u006ben" = "hidden"`,
      `[registries.x]\n${index} # token = "hidden"\n# hidden\n`,
      `[registries.x]\n${index}\ntoken = """\nhidden"""`,
      `[registries.x]\n${index}\nsecret-key = 'hidden'\nother-token = "hidden"`,
      `[registries.x]\n${index}\n[http]\nproxy = "hidden:hidden@host:3128"\n[source.y]\nregistry = "https://u:p/hidden@h/"`,
      `[registries.x]\n${index}\n[env]\nMY_TOKEN = "hidden"\nDB = { value = "postgres://u:hidden@h/db", force = true }`,
    ]) {
      const copy = shown(cargoConfig, text);
      expect(copy, text).not.toContain("hidden");
      expect(copy, text).toContain(index);
    }
  });

  test("keep the one way to log in that reads the file of placeholders", () => {
    const providers = '[registry]\nglobal-credential-providers = [ "cargo:token" ]\n';
    expect(shown(cargoConfig, `${providers}credential-provider = ["cargo:token", "/bin/evil"]\n`)).toBe(providers);
  });

  test("keep logins out of addresses, and the rest as it is", () => {
    const text = '[source.m]\nregistry = "https://u:p@ss@h/i"\n[build]\njobs = 2\n[net]\noffline = true\n[env]\nA = "1"\n';
    expect(shown(cargoConfig, text)).toBe(
      '[source.m]\nregistry = "https://h/i"\n\n[build]\njobs = 2\n\n[net]\noffline = true\n\n[env]\nA = "1"\n',
    );
  });

  test("are not there where they are no TOML", () => {
    expect(shown(cargoConfig, '[registries.x]\ntoken = "hidden\n')).toBeUndefined();
    expect(readLogins("cargo", "token = ")).toMatchObject({ logins: [], unusable: [{ what: "the whole file" }] });
  });
});

describe("an .npmrc", () => {
  test("keeps registries and switches, and loses logins and comments", () => {
    const text =
      "registry=https://r/\n//r/:_authToken=hidden\n_auth=hidden\nemail=a@b\nfund=false\n; hidden\n@scope:registry=https://s/ # hidden";
    expect(shown(npmrc, text)).toBe("registry=https://r/\nfund=false\n@scope:registry=https://s/\n");
  });

  test.each([
    ["an @ in a password", "registry=https://me:hid@den@r.example.com/npm/", "registry=https://r.example.com/npm/\n"],
    ["a slash in a password", "registry=https://me:hid/den@r.example.com/npm/\nfund=false", "fund=false\n"],
    ["a number before the slash", "registry=https://me:12/hidden@r.example.com/npm/\nfund=false", "fund=false\n"],
    ["a proxy without a scheme", "proxy=me:hidden@proxy:3128\nfund=false", "fund=false\n"],
    ["a login in the name of a place", "//me:hidden@r.example.com/:always-auth=true\nfund=false", "fund=false\n"],
    ["a login in a section", "fund=false\n[x]\n_authToken=hidden", "fund=false\n"],
    ["spaces around", "  //r/:_authToken   =   hidden\nfund = false", "fund=false\n"],
    ["quotes", '"//r/:_authToken" = "hidden"\n\'_password\'=hidden\nfund=false', "fund=false\n"],
    ["a list", "_auth[]=hidden\nomit[]=dev\nomit[]=optional", "omit[]=dev\nomit[]=optional\n"],
  ])("with %s shows no part of it", (_, text, wanted) => {
    expect(shown(npmrc, text)).toBe(wanted);
  });

  test("of yarn is lines of names and values, or not there", () => {
    expect(shown(yarnrc, '# hidden\nregistry "https://me:hid@den@r/"\n"//r/:_authToken" "hidden"\nyarn-offline-mirror ./m\n')).toBe(
      'registry "https://r/"\nyarn-offline-mirror ./m\n',
    );
    expect(shown(yarnrc, "npmRegistryServer: x\n  npmAuthToken: hidden with words\n")).toBeUndefined();
  });
});

describe("a pip.conf", () => {
  test.each([
    ["an @ in a password", "index-url = https://me:hid@den@h/simple", "index-url = https://h/simple\n"],
    ["a slash in a password", "index-url = https://me:hid/den@h/simple\ntimeout = 5", "timeout = 5\n"],
    [
      "several addresses",
      "extra-index-url =\n  https://a/simple\n\thttps://me:hidden@b/simple",
      "extra-index-url =\n    https://a/simple\n    https://b/simple\n",
    ],
    ["a colon for a sign", "index-url: https://me:hidden@h/simple", "index-url = https://h/simple\n"],
    ["comments", "# https://me:hidden@h/\n; hidden\ntimeout = 5", "timeout = 5\n"],
    ["a client certificate", "client_cert = /home/me/hidden.pem\nproxy = me:hidden@proxy:3128\ntimeout = 5", "timeout = 5\n"],
  ])("with %s shows no part of it", (_, text, wanted) => {
    expect(shown(pipConf, `[global]\n${text}\n`)).toBe(`[global]\n${wanted}`);
  });

  test("that Python would refuse is not there", () => {
    expect(shown(pipConf, "index-url = https://me:hidden@h/simple\n")).toBeUndefined();
    expect(shown(pipConf, "[global]\nhidden\n")).toBeUndefined();
  });
});

describe("a .gitconfig", () => {
  test("keeps a user's name and habits, and nothing that runs or logs in", () => {
    expect(
      shown(
        gitconfig,
        "[user]\n\tname = A\n[credential]\n\thelper = store\n[core]\n\teditor = vi\n\tautocrlf = input\n[alias]\n\tst = status\n\tx = !sh\n",
      ),
    ).toBe("[user]\n\tname = A\n[credential]\n\thelper = store\n[core]\n\tautocrlf = input\n[alias]\n\tst = status\n");
    expect(shown(gitconfig, '[credential]\n\thelper = "!sh"\n\tusername = x\n[user]\n\tname = A\n')).toBe("[user]\n\tname = A\n");
  });

  test.each([
    ["a value that goes on in the next line", "[user]\n\tname = A\\\n B # hidden\n\tpassword = hid\\\nden\n", "[user]\n\tname = A B\n"],
    ["a section and its key in one line", '[credential "x"] helper = hidden\n[user] name = A\n', "[user]\n\tname = A\n"],
    ["quotes and escapes", '[user]\n\tname = "A; \\"B\\"" ; hidden\n', '[user]\n\tname = "A; \\"B\\""\n'],
    ["a key without a value", "[init]\n\ttemplate\n[user]\n\ttoken\n", "[init]\n\ttemplate\n"],
    ["an address", "[branch]\n\tx = https://me:hid@den@h/y\n\tz = https://me:hid/den@h/y\n", "[branch]\n\tx = https://h/y\n"],
  ])("with %s is read as git reads it", (_, text, wanted) => {
    expect(shown(gitconfig, text)).toBe(wanted);
  });

  test("that git would refuse is not there", () => {
    for (const text of [
      "name = hidden\n",
      '[user]\n\tname = "hidden\n',
      "[user]\n\tname = hid\\den\n",
      "[user\n",
      "[user]\n\t1 = hidden\n",
    ])
      expect(shown(gitconfig, text), text).toBeUndefined();
  });
});

test("files of the system keep accounts and variables, and lose passwords", () => {
  expect(shadow("root:$6$abc:19000:0:99999:7:::\ndaemon:*:1::::::\nx:!:1::::::")).toBe(
    "root:*:19000:0:99999:7:::\ndaemon:*:1::::::\nx:!:1::::::",
  );
  expect(shown(environmentFile, 'PATH="/usr/bin"\nAPI_TOKEN=x\n# https://me:hidden@h/\n')).toBe('PATH="/usr/bin"\n');
});
