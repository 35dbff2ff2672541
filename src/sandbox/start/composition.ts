/** What a new sandbox is to be, from the request, its origin and the configs: its settings before the project is looked at, then its row. */
import type { MaskRequest } from "../../machine/drivers/drivers.ts";
import type { Backend } from "../../machine/backends.ts";
import { filterEnvironment } from "../../machine/capture/environment.ts";
import { callersHome } from "../../machine/capture/people.ts";
import type { CreateInput } from "../../base/schema/contracts.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { networkRules } from "../../base/schema/network.ts";
import { projectInside, WORKSPACE_USER } from "../../base/schema/workspace.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { changedAutonomy } from "../permissions/autonomy.ts";
import { chosenLimits } from "../permissions/limit-changes.ts";
import { chosenNetwork } from "../permissions/network-narrowing.ts";
import { hiddenPaths, shownPaths } from "../projects/projects.ts";
import { withoutPerson } from "../projects/workspaces.ts";
import type { Parts } from "../shared/parts.ts";
import type { Reservation } from "../shared/registry.ts";
import { effectiveLimits } from "./admission.ts";
import { beginning } from "./first-rows.ts";
import type { Captured, Origin } from "./origin.ts";
import { unmappedNotes } from "./owners.ts";

export type UnnamedRow = Omit<SandboxRow, keyof Reservation>;

export interface CreateSettings {
  readonly limits: SandboxRow["limits"];
  readonly environment: ReturnType<typeof filterEnvironment>;
  readonly hiding: MaskRequest;
}

export class Composition {
  readonly #parts: Pick<Parts, "user" | "uid" | "home">;

  constructor(parts: Pick<Parts, "user" | "uid" | "home">) {
    this.#parts = parts;
  }

  /** Where only one user exists inside, it is that one. */
  emptyUser({ driver }: Backend): string {
    return driver.capabilities.allUsers ? WORKSPACE_USER : String(this.#parts.uid);
  }

  asked(input: CreateInput, { view, start }: Origin): CreateSettings {
    const { user, home } = this.#parts;
    const environment = filterEnvironment(input.env ?? {}, view.config.env);
    return {
      limits: effectiveLimits(input.limits, view.config, user),
      environment,
      hiding: {
        // Whose toolchains are shown.
        home: callersHome(environment.env["HOME"], home),
        project: projectInside({ project: view.row.path, start }),
        mask: [...user.mask, ...hiddenPaths(view)],
        expose: [...user.expose, ...shownPaths(view)],
      },
    };
  }

  compose(
    input: CreateInput,
    { view, base, start, notes = [], opens = [] }: Origin & Captured,
    backend: Backend,
    { limits, environment, hiding }: CreateSettings,
  ): UnnamedRow {
    const { driver, storage } = backend;
    const { leftOut } = environment;
    const { home } = hiding;
    const idleMs = input.idleMs ?? view.config.idle ?? LIMITS.defaultIdleMs;
    const empty = start?.from === "empty";
    const user = empty ? this.emptyUser(backend) : (input.user ?? String(this.#parts.uid));
    const env = empty ? withoutPerson(environment.env) : environment.env;
    const rules = networkRules(view.config.network, this.#parts.user.network, { mode: input.network, variables: input.networkVariables });
    return {
      ...beginning(idleMs),
      driver: driver.name,
      walled: driver.capabilities.walled,
      project: view.row.path,
      start,
      readOnly: input.readOnly === true || empty,
      parent: null,
      limits,
      givenLimits: chosenLimits(input.limits),
      limitsHeld:
        driver.capabilities.limits === "hard" && storage.capabilities.quota === "watched" ? "watched" : driver.capabilities.limits,
      storage: storage.name,
      idleMs,
      labels: input.labels ?? {},
      autonomy: changedAutonomy(undefined, input),
      base: base.id,
      user,
      env,
      environmentLeftOut: leftOut,
      environmentSet: Object.keys(view.config.env.set),
      notes: [...notes, ...(driver.capabilities.allUsers ? unmappedNotes({ user, home }, base) : [])],
      untrusted: [...view.untrusted],
      masked: [...hiding.mask],
      exposed: [...hiding.expose],
      sudo: view.config.sudo,
      network: { ...rules, allow: [...rules.allow, ...opens] },
      networkChosen: chosenNetwork({}, { mode: input.network, allow: opens }),
      services: view.config.services,
      home,
      idempotencyKey: input.idempotencyKey ?? null,
      held: input.held,
    };
  }
}
