import { findPaths } from "../../../../base/config/paths.ts";
import { VivError } from "../../../../base/schema/errors.ts";
import { AGENT, loginPlace, PROVIDER_OPTION, sharing } from "../../agent-login.ts";
import { command } from "../../command.ts";

export default command({
  name: "agents logout",
  summary: "Forget an agent's login; the next request is refused",
  details: "Agents that use the same model API lose it, too. The user's config stays as it is.",
  examples: [["viv agents logout claude", "forget the key or token"]],
  options: PROVIDER_OPTION,
  positionals: [AGENT],
  async run({ options, positionals: [agent = ""], json, screen, env, client }) {
    const { provider, secret } = loginPlace(agent, options.provider, findPaths(env).config);
    const server = await client();
    if (!(await server.call("listSecrets", {})).secrets.some(({ name }) => name === secret))
      throw new VivError("not_found", `There is no login of ${agent}.`, { remedy: `\`viv agents login ${agent}\` keeps one.` });
    await server.call("removeSecret", { secret });
    if (json) return screen.json({ agent, provider, secret });
    const others = sharing(provider).filter((one) => one !== agent);
    screen.print(
      `The login of ${agent} is forgotten.${others.length === 0 ? "" : ` It was that of ${others.join(", ")} for ${provider}, too.`}`,
    );
  },
});
