"""JupyterLab on Debian's jupyter-server: serves the front end beside this file, and answers what that front end asks and that server lacks."""

import json
import os
from pathlib import Path

from jupyter_server.base.handlers import APIHandler
from jupyterlab_server import LabServerApp
from tornado import web, websocket

HERE = Path(__file__).resolve().parent
VERSION = json.loads((HERE / "about.json").read_text())["version"]


class Me(APIHandler):
    """Who the user is: jupyter-server has this from version 2 on."""

    @web.authenticated
    def get(self):
        name = "anonymous"
        identity = {"username": name, "name": name, "display_name": name, "initials": "A", "avatar_url": None, "color": None}
        self.finish(json.dumps({"identity": identity, "permissions": {}}))


class Events(websocket.WebSocketHandler):
    """What happens in the server: jupyter-server tells this from version 2 on, and the front end asks again and again where no answer is."""

    def on_message(self, message):
        pass


class Lab(LabServerApp):
    name = "lab"
    app_name = "JupyterLab"
    app_version = VERSION
    load_other_extensions = True
    static_dir = templates_dir = str(HERE / "static")
    schemas_dir = str(HERE / "schemas")
    themes_dir = str(HERE / "themes")
    app_settings_dir = str(HERE / "settings")
    user_settings_dir = os.environ["JUPYTERLAB_SETTINGS_DIR"]
    workspaces_dir = os.environ["JUPYTERLAB_WORKSPACES_DIR"]

    def initialize_settings(self):
        super().initialize_settings()
        # Pages show mathematics by their own files, and load nothing from other machines.
        self.settings.setdefault("page_config_data", {}).update({"federated_extensions": [], "fullMathjaxUrl": ""})

    def initialize_handlers(self):
        self.handlers.extend([("/api/me", Me), ("/api/events/subscribe", Events)])
        super().initialize_handlers()


def _jupyter_server_extension_points():
    return [{"module": "vivarium_lab", "app": Lab}]


main = Lab.launch_instance
