/** The option --tools of `viv mcp` and of `viv mcp install`. */
import { chosenTools, DEFAULT_TOOLS, TOOL_NAMES, TOOL_SETS, type ToolName } from "../../base/schema/mcp.ts";
import { usageError } from "./values.ts";

/** The tools that are served; a name that is neither a tool nor a set is refused. */
export function toolsOf(names: string | undefined): readonly ToolName[] {
  if (names === undefined) return DEFAULT_TOOLS;
  const { tools, unknown } = chosenTools(names);
  if (unknown === undefined) return tools;
  throw usageError(
    `There is no tool ${JSON.stringify(unknown)}.`,
    `There are the sets ${Object.keys(TOOL_SETS).join(", ")}, and the tools ${TOOL_NAMES.join(", ")}.`,
  );
}
