import { command } from "../command.ts";
import { commandSpec, RUN_OPTIONS, runInside } from "../run-inside.ts";

export default command({
  name: "shell",
  summary: "Open your shell in a sandbox",
  examples: [
    ["viv shell try", "your login shell, in this folder, in the clone"],
    ["viv shell --user root try", "as root inside, which has no rights outside"],
  ],
  options: { user: RUN_OPTIONS.user, cwd: RUN_OPTIONS.cwd, env: RUN_OPTIONS.env },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ options, positionals: [name = ""], json, screen, cwd, env, caller, client }) {
    const server = await client();
    const sandbox = await server.call("findSandbox", { sandbox: name });
    const defaults = { timeout: undefined, tty: false, "no-tty": false, interactive: false, "no-stdin": false };
    const all = { ...options, ...defaults };
    const shell = env["SHELL"] ?? "/bin/sh";
    return runInside(server, sandbox.id, commandSpec(sandbox, [shell, "-l"], all, { cwd, env, caller }), all, {
      screen,
      json,
      env,
      caller,
    });
  },
});
