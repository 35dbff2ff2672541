/** Frozen copies of reality as it is now. Perhaps no sandbox will use one: it stays as long as a caller works with it. */
import type { Base } from "../../base/store/rows.ts";
import { errorText } from "../../base/host/log.ts";
import { dropUnused } from "./bases.ts";
import type { Parts } from "../shared/parts.ts";
import type { Backend } from "../../machine/backends.ts";
import type { ProjectView } from "./projects.ts";
import type { Registry } from "../shared/registry.ts";
import { captureBase, type CaptureParts } from "./service-data.ts";

/** Runs work with a base of the project as it is now. */
export async function withFreshBase<T>(
  parts: CaptureParts & Pick<Parts, "log">,
  registry: Registry,
  view: ProjectView,
  backend: Backend,
  work: (base: Base) => Promise<T>,
): Promise<T> {
  const base = await captureBase(parts, view, backend, "last");
  const release = registry.hold(base.id);
  try {
    return await work(base);
  } finally {
    await forgetUnused(parts, registry, base, backend);
    release();
  }
}

/** Removes a base that only the caller holds: no removal of a sandbox would ever remove it. */
export async function forgetUnused(
  parts: Pick<Parts, "store" | "log">,
  registry: Registry,
  base: Base,
  { capture }: Backend,
): Promise<void> {
  try {
    const unused = await parts.store.change((change) => dropUnused(change, registry, [base.id], 1));
    for (const id of unused) await capture.forget(id);
  } catch (error) {
    parts.log.info("a base is left to the next server", { base: base.id, error: errorText(error) });
  }
}
