/** Use cases of the way out. */
import type { Approvals } from "../approvals/approvals.ts";
import { findProject } from "../capture/project.ts";
import { shownHost } from "../network/host.ts";
import { isMetadata } from "../network/rules.ts";
import type { Parts } from "../sandbox/parts.ts";
import type { Sandboxes } from "../sandbox/sandboxes.ts";
import type { ParsedOf } from "../schema/contracts.ts";
import { VivError } from "../schema/errors.ts";
import type { Handlers } from "./operations.ts";

interface NetworkParts {
  readonly parts: Parts;
  readonly sandboxes: Sandboxes;
  readonly approvals: Approvals;
}

type Own = "inspectNetwork" | "changeNetwork" | "allowPrivate";

export function networkHandlers({ parts, sandboxes, approvals }: NetworkParts): Pick<Handlers, Own> {
  return {
    inspectNetwork: async ({ sandbox }) => sandboxes.networks.report(await sandboxes.find(sandbox)),
    changeNetwork: ({ sandbox, ...change }) => sandboxes.changeNetwork(sandbox, change),
    allowPrivate: (input) => allowPrivate(parts, approvals, input),
  };
}

/** A question that is answered at once: it is recorded, listed and taken back like one that a sandbox put. */
async function allowPrivate(
  { privateHosts, state }: Parts,
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
