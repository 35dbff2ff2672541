import { command } from "../command.ts";
import { findCommand } from "../references.ts";
import { explainEnd, runSession, UNREAD_EXIT_CODE } from "../session.ts";
import { clean } from "../text.ts";

export default command({
  name: "attach",
  summary: "Follow a running command, with its terminal and input",
  details:
    "Output from before is shown first, as far as the log goes back. Ctrl-P ctrl-Q detaches from a command with a terminal, ctrl-C from one without, a signal from both; the command goes on. The exit code is the command's.",
  examples: [["viv attach try $(viv exec -d try -- npm run dev)", "see a background command live"]],
  options: { "no-stdin": { type: "flag", summary: "Only look; pass no input on" } },
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    {
      name: "COMMAND",
      summary: "Its id, or enough of its beginning, see `viv ps`",
      completes: "running-command",
      without: "`viv ps SANDBOX` lists commands, `viv shell SANDBOX` opens a shell.",
    },
  ],
  async run({ options, positionals: [sandbox = "", given = ""], json, screen, client }) {
    const server = await client();
    const stdin = !options["no-stdin"] && !json;
    const stream = await server.attach(sandbox, await findCommand(server, sandbox, given), { stdin });
    const terminal = stream.command.terminal && stdin && process.stdin.isTTY;
    const keys = terminal ? "Ctrl-P ctrl-Q" : "Ctrl-C";
    if (process.stdin.isTTY && stream.command.running) screen.say(screen.paint("dim", `${keys} leaves it running.`));
    const onGap = (bytes: number): void => screen.warn(`viv: ${bytes} bytes of earlier output are no longer in the log.`);
    const target = json ? { stdout: process.stderr } : {};
    const end = await runSession(stream, { terminal, stdin, signals: "leave", detachable: terminal, onGap, ...target });
    if (end === "unread") return UNREAD_EXIT_CODE;
    if (end === "detached") {
      screen.say("Detached; the command goes on.");
      return 0;
    }
    if (json) screen.json({ ...stream.command, running: false, end });
    const explanation = explainEnd(end);
    if (explanation !== undefined) screen.say(`viv: ${clean(explanation)}`);
    return end.exitCode;
  },
});
