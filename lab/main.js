/** Starts JupyterLab with the extensions that package.json lists, all of them part of this program: none is loaded from elsewhere. */
import { JupyterLab } from "@jupyterlab/application";
import { JupyterPluginRegistry } from "@jupyterlab/coreutils";
import { IConnectionStatus, IServiceManager } from "@jupyterlab/services";
import { extensions, mimeExtensions } from "virtual:extensions";

/** News of other machines, and language servers, which the server inside does not have. */
const DISABLED = [
  "@jupyterlab/apputils-extension:announcements",
  "@jupyterlab/fileeditor-extension:language-server",
  "@jupyterlab/notebook-extension:language-server",
];

const pluginsOf = (extension) => [extension.default].flat().filter(({ id }) => !DISABLED.includes(id));

const pluginRegistry = new JupyterPluginRegistry();
pluginRegistry.registerPlugins(extensions.flatMap(pluginsOf));
const lab = new JupyterLab({
  pluginRegistry,
  serviceManager: await pluginRegistry.resolveRequiredService(IServiceManager),
  connectionStatus: await pluginRegistry.resolveOptionalService(IConnectionStatus),
  mimeExtensions: mimeExtensions.flatMap(pluginsOf),
  disabled: { matches: DISABLED, patterns: [] },
  deferred: { matches: [], patterns: [] },
  availablePlugins: [],
});
await lab.start({ bubblingKeydown: true });
