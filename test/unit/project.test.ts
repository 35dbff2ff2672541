import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { format, parseList, sanitise, withoutLogin } from "../../src/capture/gitconfig.ts";
import { homeFolders, parsePeople } from "../../src/capture/people.ts";
import { findProject } from "../../src/capture/project.ts";
import * as copies from "../../src/capture/sanitise.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "viv-find-")));
afterAll(() => rmSync(folder, { recursive: true }));
const state = join(folder, "state");

describe("finding the project", () => {
  test("is the nearest folder with a vivarium.json or a .git, through links", () => {
    mkdirSync(join(folder, "outer/.git"), { recursive: true });
    mkdirSync(join(folder, "outer/inner/deep/er"), { recursive: true });
    writeFileSync(join(folder, "outer/inner/vivarium.json"), "{}");
    symlinkSync(join(folder, "outer/inner/deep"), join(folder, "shortcut"));
    expect(findProject(join(folder, "outer/inner/deep/er"), state)).toBe(join(folder, "outer/inner"));
    expect(findProject(join(folder, "shortcut"), state)).toBe(join(folder, "outer/inner"));
    expect(findProject(join(folder, "outer"), state)).toBe(join(folder, "outer"));
  });

  test.each([
    ["a folder that does not exist", () => join(folder, "absent"), /does not exist/],
    ["a file", () => join(folder, "outer/inner/vivarium.json"), /not a folder/],
    ["a folder of the kernel", () => "/proc/self", /vivarium\.json|folder of the system/],
    ["Vivarium's own state", () => (mkdirSync(join(state, "x/.git"), { recursive: true }), join(state, "x")), /state folder/],
  ])("refuses %s with a sentence", (_, path, sentence) => {
    expect(() => findProject(path(), state)).toThrow(
      expect.objectContaining({ code: "project_not_found", message: expect.stringMatching(sentence) }),
    );
  });

  test("refuses a folder that Vivarium's own state lies in", () => {
    mkdirSync(join(folder, "around/.git"), { recursive: true });
    mkdirSync(join(folder, "around/viv"), { recursive: true });
    expect(() => findProject(join(folder, "around"), join(folder, "around/viv"))).toThrow(/state folder/);
  });

  test("home folders are those of people, not of services", () => {
    const people = parsePeople(
      "root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000::/data/me:/bin/sh\nwww:x:33:33::/var/www:/x\nnobody:x:65534:65534::/nonexistent:/x\n",
    );
    const homes = homeFolders(people);
    expect(homes).toContain("/root");
    expect(homes).toContain("/data/me");
    expect(homes).not.toContain("/var/www");
    expect(homes).not.toContain("/");
    expect(homeFolders([], [homedir()])).toContain(homedir());
  });
});

describe("settings without logins", () => {
  test("a repository keeps its remotes and branches and loses what logs in or runs", () => {
    const listed = [
      "core.bare\nfalse",
      "remote.origin.url\nhttps://u:t@h/x.git",
      "remote.up.url\nssh://git@h/x.git",
      "credential.helper\nstore",
      "filter.lfs.clean\ngit-lfs clean",
      "include.path\n/x",
      "http.https://h/.extraheader\nAuthorization: x",
      "branch.main.merge\nrefs/heads/main",
      "core.sshcommand\nevil",
      "alias.x\n!evil",
      'user.name\nA "B" \\ C',
      "extensions.flag",
      "",
    ].join("\0");
    const text = format(sanitise(parseList(listed)));
    for (const gone of ["credential", "lfs", "include", "extraheader", "sshcommand", "alias", "u:t"]) expect(text).not.toContain(gone);
    expect(text).toContain('[remote "origin"]\n\turl = "https://h/x.git"');
    expect(text).toContain("ssh://git@h/x.git");
    expect(text).toContain('name = "A \\"B\\" \\\\ C"');
    expect(text).toContain("[extensions]\n\tflag\n");
    expect(text).toContain('checkstat = "minimal"');
  });

  test.each([
    ["https://token@h/x", "https://h/x"],
    ["https://u:p@h/x", "https://h/x"],
    ["git@h:x.git", "git@h:x.git"],
    ["ssh://u:p@h/x", "ssh://u@h/x"],
    ["https://h/a@b", "https://h/a@b"],
  ])("%s becomes %s", (given, wanted) => expect(withoutLogin(given)).toBe(wanted));

  test("package managers' settings keep registries and lose tokens", () => {
    expect(copies.npmrc("registry=https://r/\n//r/:_authToken=abc\n_auth=abc\nemail=a@b\nfund=false\n@scope:registry=https://s/")).toBe(
      "registry=https://r/\nfund=false\n@scope:registry=https://s/",
    );
    expect(copies.cargoConfig('[registries.x]\nindex = "sparse+https://r/"\ntoken = "abc"\n')).toBe(
      '[registries.x]\nindex = "sparse+https://r/"\n',
    );
    const providers = '[registry]\nglobal-credential-providers = ["cargo:token"]\n';
    expect(copies.cargoConfig(`${providers}credential-provider = ["cargo:token", "/bin/evil"]\n`)).toBe(providers);
    expect(copies.shadow("root:$6$abc:19000:0:99999:7:::\ndaemon:*:1::::::\nx:!:1::::::")).toBe(
      "root:*:19000:0:99999:7:::\ndaemon:*:1::::::\nx:!:1::::::",
    );
    expect(copies.environmentFile('PATH="/usr/bin"\nAPI_TOKEN=x\n')).toBe('PATH="/usr/bin"\n');
    expect(
      copies.gitconfig(
        "[user]\n\tname = A\n[credential]\n\thelper = store\n[core]\n\teditor = vi\n\tautocrlf = input\n[alias]\n\tst = status\n\tx = !sh\n",
      ),
    ).toBe("[user]\n\tname = A\n[credential]\n\thelper = store\n[core]\n\tautocrlf = input\n[alias]\n\tst = status\n");
    expect(copies.gitconfig('[credential]\n\thelper = "!sh"\n\tusername = x\n[user]\n\tname = A\n')).toBe("[user]\n\tname = A\n");
  });
});
