/** How many spares a project gets: as many as creates of it were lately under way at once, within bounds. */
import { LIMITS } from "../../base/schema/limits.ts";
import { freeMemory } from "./admission.ts";

export class SpareDemand {
  readonly #underWay = new Map<string, number>();
  /** Of projects that had more than one at once. */
  readonly #peaks = new Map<string, number>();

  /** Counts a create until it calls what this returns. */
  begin(project: string): () => void {
    const now = (this.#underWay.get(project) ?? 0) + 1;
    this.#underWay.set(project, now);
    if (now > (this.#peaks.get(project) ?? 1)) this.#peaks.set(project, Math.min(now, LIMITS.sparesOfProject));
    return () => {
      const left = (this.#underWay.get(project) ?? 1) - 1;
      if (left === 0) this.#underWay.delete(project);
      else this.#underWay.set(project, left);
    };
  }

  /** Whether creates of any project go on besides `own`: they have the machine first. */
  isBusy(own: number): boolean {
    let all = 0;
    for (const count of this.#underWay.values()) all += count;
    return all > own;
  }

  /** `there` are the spares of all projects. A second one of a project needs a machine with room to spare. */
  wanted(project: string, there: number): number {
    const peak = this.#peaks.get(project) ?? 1;
    if (peak === 1 || there >= LIMITS.spares) return 1;
    const { freeBytes, totalBytes } = freeMemory();
    return freeBytes > totalBytes * LIMITS.sparesFreeMemoryShare ? peak : 1;
  }

  /** A spare of the project was not used in time: one less is wanted. */
  unused(project: string): void {
    const peak = (this.#peaks.get(project) ?? 1) - 1;
    if (peak <= 1) this.#peaks.delete(project);
    else this.#peaks.set(project, peak);
  }
}
