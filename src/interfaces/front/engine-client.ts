/** The client of a command line that runs in the server itself: what it asks most is answered without a connection. */
import type { z } from "zod";
import { CONTRACTS, type InputOf, type OperationName, type OutputOf, type ParsedOf } from "../../base/schema/contracts.ts";
import { ExecOpen } from "../../base/schema/streams.ts";
import { parse } from "../api/input.ts";
import { Client, type CommandStream } from "../client/client.ts";
import type { Engine } from "../operations/operations.ts";

export class EngineClient extends Client {
  readonly #engine: Engine;
  readonly #caller: AbortSignal;
  readonly #closing: AbortSignal;

  /** `caller` aborts when the caller has gone, `closing` when the server stops. */
  constructor(socket: string, engine: Engine, caller: AbortSignal, closing: AbortSignal) {
    super({ socket });
    this.#engine = engine;
    this.#caller = caller;
    this.#closing = closing;
  }

  override async call<Name extends OperationName>(name: Name, input: InputOf<Name>, signal?: AbortSignal): Promise<OutputOf<Name>> {
    const contract = CONTRACTS[name];
    const parsed = parse(contract.input, input) as ParsedOf<Name>;
    // What a command line does after its caller has gone, such as removing a sandbox, is not broken off.
    const asker = this.#caller.aborted ? new AbortController().signal : this.#caller;
    const output = await this.#engine.operations[name](parsed, signal ?? asker);
    // Parsing the answer leaves out what the contract does not name, such as the environment a row holds.
    return contract.output.parse(output) as OutputOf<Name>;
  }

  override async exec(sandbox: string, open: z.input<typeof ExecOpen>): Promise<CommandStream> {
    const stream = await this.#engine.streams.exec(sandbox, parse(ExecOpen, open));
    let over = false;
    const settled = (): void => void (over = true);
    stream.end.then(settled, settled);
    // When the server stops, the command goes on; when the caller goes, it ends as it was opened.
    return { ...stream, close: () => (over || this.#closing.aborted ? undefined : stream.close()) };
  }
}
