/** The SDK for programs in Node: `vivarium`. */
import { refuseUnknown } from "./connection.ts";
import { nodePlatform, type Where } from "./node-platform.ts";
import { VivariumClient } from "./vivarium.ts";

export * from "./exports.ts";

/** Where the server is. Without `url` it is the one of this machine and user, which is started when it does not run. */
export interface VivariumOptions extends Where {
  /** The token of a person who may answer questions; VIV_APPROVER_TOKEN if left out. */
  readonly approver?: string | undefined;
}

/** Vivarium on this machine, or at another address. Nothing is connected before the first call. */
export class Vivarium extends VivariumClient {
  constructor(options: VivariumOptions = {}) {
    refuseUnknown("new Vivarium", options, ["url", "token", "home", "start", "approver"]);
    super(nodePlatform(options));
  }
}
