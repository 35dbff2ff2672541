/** The way out of each sandbox, and its own door to the server: opened when its processes are there, changed on request, closed with it. */
import { VivError } from "../schema/errors.ts";
import { NO_NETWORK, type EffectsMode, type HostRule, type NetworkMode, type NetworkReport, type NetworkRules } from "../schema/network.ts";
import type { SandboxRow } from "../store/store.ts";
import type { Parts } from "./parts.ts";
import { isFinal } from "./state.ts";

export interface NetworkChange {
  readonly mode?: NetworkMode | undefined;
  readonly allow?: readonly HostRule[] | undefined;
  readonly deny?: readonly string[] | undefined;
  readonly ports?: readonly number[] | undefined;
  readonly effects?: EffectsMode | undefined;
}

export class Networks {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** For a sandbox whose process 1 was just launched or found again. */
  async open(row: Pick<SandboxRow, "id" | "driver" | "network">): Promise<void> {
    const folder = this.#parts.backends.of(row).driver.sockets(row.id);
    if (folder !== undefined) this.#parts.gateway.open(row.id, folder);
    const rules = rulesOf(row);
    if (rules.mode === "off") return;
    // An earlier life of it may have left its socket in a folder that is gone.
    this.#parts.egress.close(row.id);
    if (folder !== undefined) await this.#parts.egress.set(row.id, folder, rules);
  }

  close(sandbox: string): void {
    this.#parts.egress.close(sandbox);
    this.#parts.gateway.close(sandbox);
  }

  /** Called with the sandbox's lock held. */
  async change(row: SandboxRow, asked: NetworkChange): Promise<NetworkReport> {
    if (isFinal(row.state)) throw new VivError("not_running", `Sandbox ${row.name} is ${row.state}.`);
    const folder = this.#parts.backends.of(row).driver.sockets(row.id);
    if (folder === undefined) throw new VivError("unsupported", `The driver ${row.driver} has no walls around the network.`);
    const rules = changed(rulesOf(row), asked);
    const next: SandboxRow = { ...row, network: rules };
    await this.#parts.store.change(async (change) => {
      await change.putSandbox(next);
      await change.event("network.changed", row.id, { mode: rules.mode, allow: rules.allow.map(({ host }) => host).slice(0, 100) });
    });
    await this.#parts.egress.set(row.id, folder, rules);
    return this.report(next);
  }

  report(row: SandboxRow): NetworkReport {
    return { sandbox: row.id, name: row.name, rules: rulesOf(row), ...this.#parts.egress.use(row.id) };
  }
}

/** Rows of earlier versions have none. */
function rulesOf({ network }: Pick<SandboxRow, "network">): NetworkRules {
  return network ?? NO_NETWORK;
}

function changed(rules: NetworkRules, { mode, allow = [], deny = [], ports, effects }: NetworkChange): NetworkRules {
  const replaced = new Set([...deny, ...allow.map(({ host }) => host)]);
  return {
    mode: mode ?? rules.mode,
    allow: [...rules.allow.filter(({ host }) => !replaced.has(host)), ...allow],
    ports: [...(ports ?? rules.ports)],
    production: [...new Set([...rules.production, ...deny])],
    effects: effects ?? rules.effects ?? "record",
  };
}
