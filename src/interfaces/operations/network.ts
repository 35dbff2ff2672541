/** Use cases of the way out. */
import type { Approvals } from "../../rules/approvals/approvals.ts";
import { callersHome } from "../../machine/capture/people.ts";
import { findProject } from "../../machine/capture/project.ts";
import { loadProjectConfig } from "../../base/config/project-config.ts";
import { ownAddresses } from "../../rules/network/addresses.ts";
import { closedRegistries } from "../../rules/network/closed-registries.ts";
import { shownHost } from "../../rules/network/host.ts";
import { namedRegistries } from "../../rules/network/registries.ts";
import { Lookups, resolverOf, type Resolve } from "../../rules/network/resolver.ts";
import { isMetadata } from "../../rules/network/rules.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { ParsedOf } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { networkRules, type ClosedRegistry } from "../../base/schema/network.ts";
import type { Handlers } from "./operations.ts";

type OwnNetworkParts = Pick<Parts, "store" | "user" | "home" | "state" | "privateHosts">;

interface NetworkParts {
  readonly parts: OwnNetworkParts;
  readonly sandboxes: Sandboxes;
  readonly approvals: Approvals;
}

type Own = "closedRegistries" | "inspectNetwork" | "changeNetwork" | "allowPrivate";

export function networkHandlers({ parts, sandboxes, approvals }: NetworkParts): Pick<Handlers, Own> {
  const lookups = new Lookups();
  const resolve = resolverOf(parts.user.network);
  return {
    closedRegistries: async (input) => ({ registries: await closed(parts, input, (host) => lookups.find(host, resolve)) }),
    inspectNetwork: async ({ sandbox }) => sandboxes.networks.report(await sandboxes.find(sandbox)),
    changeNetwork: ({ sandbox, ...change }) => sandboxes.changeNetwork(sandbox, change),
    allowPrivate: (input) => allowPrivate(parts, approvals, input),
  };
}

/** By the rules that a sandbox would have that is created now. */
async function closed(
  { store, state, home: own, user, privateHosts }: OwnNetworkParts,
  { project: path, home, network }: ParsedOf<"closedRegistries">,
  resolve: Resolve,
): Promise<ClosedRegistry[]> {
  const project = findProject(path, state);
  const { config } = loadProjectConfig(project, (await store.projects.find({ path: project }))?.trusted ?? null);
  const rules = { ...networkRules(config.network, user.network, { mode: network }), private: [...privateHosts.of(project)] };
  if (rules.mode === "off") return [];
  const named = namedRegistries(project, callersHome(home, own));
  return closedRegistries(named, { rules, opened: user.network.private, own: ownAddresses(), resolve });
}

/** A question that is answered at once: it is recorded, listed and taken back like one that a sandbox put. */
async function allowPrivate(
  { privateHosts, state }: OwnNetworkParts,
  approvals: Approvals,
  { project: path, host, port, approver }: ParsedOf<"allowPrivate">,
): ReturnType<Handlers["allowPrivate"]> {
  approvals.requireApprover(approver);
  if (isMetadata(host)) throw new VivError("invalid_input", `${host} is a metadata service, which no sandbox reaches.`);
  const project = findProject(path, state);
  const isOpen = (): boolean => privateHosts.of(project).some((rule) => rule.host === host && rule.ports.includes(port));
  if (!isOpen()) {
    const place = `${shownHost(host)}:${port}`;
    const asked = await approvals.ask({
      sandbox: null,
      sandboxName: null,
      project,
      kind: "private",
      target: place,
      exact: JSON.stringify(["private", place, new Date().toISOString()]),
      rule: "private addresses",
      reason: "Its address is not public, so that no sandbox reaches it by itself.",
      always: `private ${place}`,
    });
    await approvals.answer(asked.id, "always", approver);
    await privateHosts.renew();
  }
  return { project, private: [...privateHosts.of(project)] };
}
