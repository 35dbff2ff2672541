/** The SDK for pages in a browser, and for other programs with no more than the web's own interfaces: `vivarium/client`. */
import { ApiClient } from "../client/api-client.ts";
import { FetchTransport } from "../client/fetch-transport.ts";
import { refuseUnknown } from "./connection.ts";
import { VivariumClient } from "./vivarium.ts";

export * from "./exports.ts";

/** Where the server is. */
export interface VivariumOptions {
  /** Address of a server that listens on TCP, such as http://127.0.0.1:7777. */
  readonly url: string;
  /** Its token, as `viv up --listen` prints it. */
  readonly token: string;
  /** The token of a person who may answer questions. */
  readonly approver?: string | undefined;
}

/** A server that listens on TCP. Has all that needs no files and no ports of the machine around it. */
export class Vivarium extends VivariumClient {
  constructor(options: VivariumOptions) {
    refuseUnknown("new Vivarium", options, ["url", "token", "approver"]);
    super({
      connect: async () => new ApiClient(new FetchTransport(options)),
      caller: { project: (path) => path },
      machine: undefined,
      approver: options.approver,
    });
  }
}
