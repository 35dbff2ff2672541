import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { withoutLogin } from "../../src/machine/capture/addresses.ts";
import { format, parseList, sanitise } from "../../src/machine/capture/gitconfig.ts";
import { homeFolders, parsePeople } from "../../src/machine/capture/people.ts";
import { findProject } from "../../src/machine/capture/project.ts";

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
    expect(text).toContain('[remote "origin"]\n\turl = https://h/x.git');
    expect(text).toContain("ssh://git@h/x.git");
    expect(text).toContain('name = "A \\"B\\" \\\\ C"');
    expect(text).toContain("[extensions]\n\tflag\n");
    expect(text).toContain("checkstat = minimal");
  });

  test.each([
    ["https://token@h/x", "https://h/x"],
    ["https://u:p@h/x", "https://h/x"],
    ["git@h:x.git", "git@h:x.git"],
    ["ssh://u:p@h/x", "ssh://u@h/x"],
    ["https://h/a@b", "https://h/a@b"],
    ["https://u:p@ss@h/x", "https://h/x"],
    ["https://u:p:q@h:8443/x", "https://h:8443/x"],
    ["postgres://u:p@h/db", "postgres://h/db"],
    ["sparse+https://u:p@h/x and http://t@h/", "sparse+https://h/x and http://h/"],
    ["file:///home/me@work/x", "file:///home/me@work/x"],
    // Where no reader agrees on what the password is, nothing is shown.
    ["https://u:p/ss@h/x", undefined],
    ["https://u:1/2@h/x", undefined],
    ["https://u:p@ss/word@h/x", undefined],
    ["https:/u:p@h/x", undefined],
    ["https://u:p?q@h/x", undefined],
    ["u:p@h:3128", undefined],
    ["git@h.example:/srv/x.git", "git@h.example:/srv/x.git"],
  ])("%s becomes %s", (given, wanted) => expect(withoutLogin(given)).toBe(wanted));
});
