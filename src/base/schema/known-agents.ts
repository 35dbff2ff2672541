/** The agents that `viv agents install` fetches, each in the one version that it was tried with, and whose login `viv agents login` keeps. */

export interface KnownAgent {
  /** Name on npm. */
  readonly package: string;
  readonly version: string;
  /** The model APIs that it can use, by the names of `models` in the user's config; the first is meant where none is named. */
  readonly providers: readonly [usual: string, ...others: string[]];
  /**
   * Where its program is in the folder of the install, by the machine's architecture as Node names it; the first that is there. It is
   * the program itself where the package of the machine's kind holds one: npm's link starts it through Node, or is only made by a
   * script of the package.
   */
  readonly programs: (architecture: string) => readonly string[];
}

const inModules = (...names: readonly string[]): readonly string[] => names.map((name) => `node_modules/${name}`);
const linked = (name: string) => () => inModules(`.bin/${name}`);
const rustName = (architecture: string): string => (architecture === "arm64" ? "aarch64" : "x86_64");

export const KNOWN_AGENTS: Readonly<Record<string, KnownAgent>> = {
  claude: {
    package: "@anthropic-ai/claude-code",
    version: "2.1.325",
    providers: ["anthropic"],
    programs: (architecture) => ["", "-musl"].flatMap((libc) => inModules(`@anthropic-ai/claude-code-linux-${architecture}${libc}/claude`)),
  },
  codex: {
    package: "@openai/codex",
    version: "0.166.0",
    providers: ["openai"],
    programs: (architecture) =>
      inModules(`@openai/codex-linux-${architecture}/vendor/${rustName(architecture)}-unknown-linux-musl/bin/codex`),
  },
  opencode: {
    package: "opencode-ai",
    version: "1.18.33",
    providers: ["anthropic", "openai", "gemini"],
    programs: (architecture) => ["", "-musl"].flatMap((libc) => inModules(`opencode-linux-${architecture}${libc}/bin/opencode`)),
  },
  gemini: { package: "@google/gemini-cli", version: "0.61.0", providers: ["gemini"], programs: linked("gemini") },
  pi: { package: "@mariozechner/pi-coding-agent", version: "0.73.1", providers: ["anthropic", "openai", "gemini"], programs: linked("pi") },
  "claude-acp": {
    package: "@agentclientprotocol/claude-agent-acp",
    version: "0.99.1",
    providers: ["anthropic"],
    programs: linked("claude-agent-acp"),
  },
  "codex-acp": { package: "@agentclientprotocol/codex-acp", version: "2.6.0", providers: ["openai"], programs: linked("codex-acp") },
};
