/** A request of a sandbox as its contract declares it, and the handlers that answer. */
import type { GatewayParsedOf, GatewayPathOf, GatewayReplyOf, GatewayRequestName } from "../../base/schema/gateway-contracts.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

export interface Call<Name extends GatewayRequestName> {
  /** The sandbox that asks, by its socket. */
  readonly row: SandboxRow;
  readonly path: GatewayPathOf<Name>;
  readonly input: GatewayParsedOf<Name>;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
}

export type Answer<Name extends GatewayRequestName> = Promise<GatewayReplyOf<Name>>;
export type Handlers = { readonly [Name in GatewayRequestName]: (call: Call<Name>) => Answer<Name> };
