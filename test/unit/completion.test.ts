import { describe, expect, test } from "vitest";
import { EffectsMode, NetworkMode } from "../../src/base/schema/network.ts";
import { Role, YoloLevel } from "../../src/base/schema/policy.ts";
import { SandboxState } from "../../src/base/schema/sandbox.ts";
import { nextOffer } from "../../src/interfaces/cli/offers.ts";
import { commandNames, loadCommand } from "../../src/interfaces/cli/registry.ts";

describe("completion", () => {
  const declarations = { names: commandNames(), load: loadCommand };
  /** What is offered for the last word, with `<kind>` for what a server knows and what the shell finds. */
  const offered = async (...words: string[]): Promise<string[]> => {
    const { candidates, files, programs, known, prefix } = await nextOffer(words, declarations);
    return [
      ...(files === true ? ["<files>"] : []),
      ...(programs === true ? ["<programs>"] : []),
      ...(known === undefined ? [] : [`<${[known.what, ...known.before].join(" ")}>`]),
      ...candidates
        .map(({ word }) => `${prefix ?? ""}${word}`)
        .filter((word) => (words.at(-1) ?? "").startsWith("-") || !word.startsWith("-")),
    ];
  };

  test("offers commands first, and then what fits each place", async () => {
    expect(await offered("")).toEqual(expect.arrayContaining(["create", "files", "secret", "try"]));
    expect(await offered("files", "")).toEqual(["ls", "cat", "put", "mv", "rm", "mkdir", "stat", "watch"]);
    expect(await offered("help", "files", "")).toContain("mkdir");
    expect(await offered("exec", "")).toEqual(["<sandbox>"]);
    expect(await offered("exec", "box", "")).toEqual(["<programs>"]);
    expect(await offered("exec", "box", "--", "")).toEqual(["<programs>"]);
    expect(await offered("exec", "box", "--", "ls", "-")).toEqual(["<files>"]);
    expect(await offered("inspect", "box", "")).toEqual([]);
    expect(await offered("rm", "one", "")).toEqual(["<sandbox one>"]);
    expect(await offered("logs", "box", "")).toEqual(["<command box>"]);
    expect(await offered("attach", "--no-stdin", "box", "")).toEqual(["<running-command box>"]);
    expect(await offered("rollback", "box", "")).toEqual(["<snapshot box>"]);
    expect(await offered("snapshot", "box", "")).toEqual([]);
    expect(await offered("experiment", "")).toEqual(["<experiment>"]);
    expect(await offered("experiment", "exp1", "")).toEqual(["show", "cancel", "retry", "pick", "rm"]);
    expect(await offered("experiment", "exp1", "pick", "")).toEqual(["<attempt exp1 pick>"]);
    expect(await offered("cp", "")).toEqual(["<files>", "<copy>"]);
    expect(await offered("files", "cat", "")).toEqual(["<sandbox>"]);
    expect(await offered("completion", "")).toEqual(["bash", "zsh", "fish", "words"]);
  });

  test("offers options where one is begun, each once, and the values that they take", async () => {
    expect(await offered("create", "--mem")).toContain("--memory");
    expect(await offered("diff", "--stat", "-")).toEqual(expect.not.arrayContaining(["--stat"]));
    expect(await offered("try", "-c", "true", "-")).toEqual(expect.arrayContaining(["--check"]));
    expect(await offered("try", "--pick", "")).toEqual(["auto", "ask", "none"]);
    expect(await offered("try", "--pick=a")).toEqual(["--pick=auto", "--pick=ask", "--pick=none"]);
    expect(await offered("try", "--pick", "=", "a")).toEqual(["auto", "ask", "none"]);
    expect(await offered("try", "-f", "")).toEqual(["<files>"]);
    expect(await offered("create", "--name", "")).toEqual([]);
    expect(await offered("create", "--network", "")).toEqual(["off", "allow-list", "public"]);
    expect(await offered("fork", "box", "--snapshot", "")).toEqual(["<snapshot box>"]);
    expect(await offered("exec", "-tu", "root", "")).toEqual(["<sandbox>"]);
    expect(await offered("kill", "-s", "")).toContain("KILL");
    expect(await offered("ls", "--state", "")).toEqual(SandboxState.options);
    expect(await offered("network", "box", "--mode", "")).toEqual(NetworkMode.options);
    expect(await offered("network", "box", "--effects", "")).toEqual(EffectsMode.options);
    expect(await offered("create", "--role", "")).toEqual(Role.options);
    expect(await offered("policy", "set", "box", "--yolo", "")).toEqual([...YoloLevel.values].map(String));
    expect(await offered("create", "--project", "")).toEqual(["<files>"]);
    expect(await offered("exec", "--cwd", "")).toEqual(["<files>"]);
    expect(await offered("events", "--sandbox", "")).toEqual(["<sandbox>"]);
    expect(await offered("secret", "set", "NAME", "--path", "")).toEqual([]);
  });
});
