import { resolve } from "node:path";
import { command } from "../command.ts";
import { runPromotion, promotionExit } from "../promote-run.ts";
import { printSettled } from "../promotion-view.ts";
import { findId } from "../references.ts";

export default command({
  name: "undo",
  summary: "Undo a promotion",
  details:
    "Brings the project's files back to what they were before. Files edited since keep those edits where both fit together; where they do not, nothing is written and the conflicts are listed.",
  examples: [
    ["viv undo", "the last promotion of this project"],
    ["viv undo prm4d5e6f", "a certain one; the beginning of its id is enough"],
  ],
  options: {
    project: {
      type: "text",
      short: "p",
      value: "PATH",
      completes: "path",
      summary: "A folder in the project; the current one if left out",
    },
  },
  positionals: [{ name: "PROMOTION", summary: "Its id; the last one of the project if left out", optional: true, completes: "undoable" }],
  async run({ options, positionals: [text], json, screen, env, cwd, client }) {
    const server = await client();
    const promotion = text === undefined ? undefined : await findId(server, "promotion", text);
    const project = resolve(cwd, options.project ?? ".");
    const input = promotion === undefined ? { project } : { promotion };
    const undone = await runPromotion(
      { client: server, screen, env },
      () => server.call("undoPromotion", input),
      ({ kind, undoes }) => kind === "undo" && (promotion === undefined || undoes === promotion),
    );
    if (json) screen.json(undone);
    else printSettled(screen, undone);
    return promotionExit(undone);
  },
});
