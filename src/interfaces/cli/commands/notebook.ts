import { showLink } from "../browser.ts";
import { command } from "../command.ts";

export default command({
  name: "notebook",
  summary: "Open JupyterLab in a sandbox",
  details:
    "Starts JupyterLab inside the sandbox, if it does not run there, and prints a link that lets one browser in, once. Server and kernels are inside; the page has an origin of its own, and holds no token. It is the machine's own, or else the front end that Vivarium carries, on Debian's jupyter-server and python3-jupyterlab-server.",
  examples: [
    ["viv notebook try", "JupyterLab in the project's folder"],
    ["viv notebook try --file analysis.ipynb", "with a notebook of the project"],
  ],
  options: {
    file: { type: "text", short: "f", value: "FILE", summary: "A notebook or file to open, relative to the project" },
    "no-browser": { type: "flag", summary: "Print the link, and open nothing" },
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ positionals: [sandbox = ""], options, json, screen, env, client }) {
    const server = await client();
    const path = options.file === undefined ? "/lab" : `/lab/tree/${options.file.split("/").map(encodeURIComponent).join("/")}`;
    const link = await screen.during("Starting JupyterLab", server.call("openNotebook", { sandbox, path }));
    if (json) return screen.json(link);
    await showLink(link, { screen, env, quiet: options["no-browser"] });
  },
});
