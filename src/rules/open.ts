/** Opens what decides and what remembers: audit, approvals, secrets, model APIs and the proxy, in the order in which they need each other. */
import { join } from "node:path";
import type { State } from "../base/open.ts";
import { CurrentUserConfig, UserConfigFile } from "../base/config/user-config-file.ts";
import type { Closers } from "../base/host/closers.ts";
import { errorText } from "../base/host/log.ts";
import { Mover } from "../base/host/mover.ts";
import { Actions } from "./actions/actions.ts";
import { Approvals } from "./approvals/approvals.ts";
import { Audit } from "./audit/audit.ts";
import { openEgress } from "./effects/open-egress.ts";
import type { Models } from "./models/models.ts";
import { openModels } from "./models/open.ts";
import { ModelSettings } from "./models/settings.ts";
import type { Egress } from "./network/egress.ts";
import { PrivateHosts } from "./network/private-hosts.ts";
import type { Secrets } from "./secrets/secrets.ts";
import { Previews } from "./sessions/previews.ts";
import { Sessions } from "./sessions/sessions.ts";

export interface RulesOptions {
  /** Notes that a sandbox is in use. */
  readonly touch: (sandbox: string) => void;
  /** The server's own ports, which it has only once it listens. */
  readonly ownPorts: () => readonly number[];
  /** Called at named points; tests kill the process there. */
  readonly reach: (point: string) => void;
}

export interface Rules {
  /** The user's config, read again when its file changes. */
  readonly config: CurrentUserConfig;
  readonly audit: Audit;
  readonly approvals: Approvals;
  /** Browsers that are logged in to the dashboard. */
  readonly sessions: Sessions;
  /** Browsers that were let in to previews of ports. */
  readonly previews: Previews;
  readonly secrets: Secrets;
  readonly models: Models;
  /** Hosts with private addresses that people opened beside the user's config. */
  readonly privateHosts: PrivateHosts;
  /** The proxy: the only way out of sandboxes. */
  readonly egress: Egress;
  /** Moves the bytes of connections that were decided on. */
  readonly mover: Mover;
  readonly actions: Actions;
}

export async function openRules(
  { paths, store, user, log, cell }: State,
  { touch, ownPorts, reach }: RulesOptions,
  closers: Closers,
): Promise<Rules> {
  const trouble = (error: unknown, lost: number): void => log.warn("trouble with the audit trail", { lost, error: errorText(error) });
  const audit = new Audit(store, join(paths.home, "audit-anchor"), trouble, { reach });
  closers.add(() => audit.close());
  const sessions = await Sessions.open(store, audit);
  const previews = await Previews.open(store, sessions);
  const approvals = new Approvals(store, audit, join(paths.home, "approver-token"), reach, (given) => sessions.isPerson(given));
  const config = new UserConfigFile(paths.config);
  const settings = new ModelSettings(
    user,
    () => config.changed(),
    (error) => log.warn("the user's config is not as it should be, and what it said of models before holds", { error: errorText(error) }),
  );
  const current = new CurrentUserConfig(paths.config, user, (error) =>
    log.warn("the user's config is not as it should be, and what it said before holds", { error: errorText(error) }),
  );
  // Keys of notifications are used by the server alone: no request of a sandbox gets one.
  const isNotifiers = (name: string): boolean =>
    Object.values(current.get().notifications.channels).some((channel) => "secret" in channel && channel.secret === name);
  const { secrets, models } = await openModels({ store, audit, approvals, settings, log, touch, isReserved: isNotifiers }, paths.home);
  const privateHosts = await PrivateHosts.open(store);
  const { interceptor } = models;
  const mover = new Mover({ program: cell, log });
  closers.add(() => mover.close());
  const egress = openEgress({ store, log, mover, audit, approvals, privateHosts, interceptor, user: user.network, ownPorts, reach });
  closers.add(() => egress.closeAll());
  return {
    config: current,
    audit,
    approvals,
    sessions,
    previews,
    secrets,
    models,
    privateHosts,
    egress,
    mover,
    actions: new Actions({ store, audit, approvals, user, reach }),
  };
}
