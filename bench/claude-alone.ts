/** How Claude Code is started outside of a sandbox, to compare with. */
export const CLAUDE_ALONE = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  IS_SANDBOX: "1",
  ENABLE_TOOL_SEARCH: "false",
  ANTHROPIC_API_KEY: "none",
};

/** As in a sandbox, without hooks and with nothing to ask. */
export const CLAUDE_ALONE_FLAGS =
  "-p --input-format stream-json --output-format stream-json --verbose --replay-user-messages --setting-sources user --strict-mcp-config --dangerously-skip-permissions".split(
    " ",
  );
