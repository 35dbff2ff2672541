/** Random changes to a tree, of every kind a project sees. The same seed makes the same changes. */
import {
  appendFileSync,
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";

export class Mutations {
  readonly #root: Buffer;
  #state: number;

  constructor(root: string, seed: number) {
    this.#root = Buffer.from(root);
    this.#state = seed;
  }

  /** A number from 0 up to but without `bound`. */
  #random(bound: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * bound);
  }

  #choose<T>(list: readonly T[]): T {
    return list[this.#random(list.length)] as T;
  }

  #walk(): { folders: Buffer[]; others: Buffer[] } {
    const folders: Buffer[] = [this.#root];
    const others: Buffer[] = [];
    for (const folder of folders) {
      for (const name of readdirSync(folder, { encoding: "buffer" })) {
        const path = Buffer.concat([folder, Buffer.from("/"), name]);
        if (lstatSync(path).isDirectory()) folders.push(path);
        else others.push(path);
      }
    }
    return { folders, others };
  }

  #name(): Buffer {
    const number = this.#random(12);
    const odd = [Buffer.from([0xff, 0xfe, 0x41 + number]), Buffer.from(`line\nbreak${number}`), Buffer.from(` ${number}=é`)];
    return this.#random(5) === 0 ? this.#choose(odd) : Buffer.from(`n${number}`);
  }

  change(): void {
    const { folders, others } = this.#walk();
    const below = folders.slice(1);
    const folder = this.#choose(folders);
    const path = Buffer.concat([folder, Buffer.from("/"), this.#name()]);
    const other = others.length === 0 ? undefined : this.#choose(others);
    const regular = other !== undefined && lstatSync(other).isFile() ? other : undefined;
    const changes: (() => void)[] = [
      () => this.#replace(path, () => writeFileSync(path, "x".repeat(this.#random(9000)))),
      () => this.#replace(path, () => mkdirSync(path)),
      () => this.#replace(path, () => symlinkSync(this.#choose(["/etc/passwd", "nowhere", "../.."]), path)),
      () => this.#replace(path, () => this.#sparse(path)),
      () => regular !== undefined && appendFileSync(regular, "more"),
      () => regular !== undefined && chmodSync(regular, this.#choose([0o644, 0o755, 0o600, 0o444])),
      () => regular !== undefined && utimesSync(regular, 1e9 + this.#random(1e6), 1e9 + this.#random(1e6)),
      () => regular !== undefined && !regular.equals(path) && this.#replace(path, () => this.#linkIfThere(regular, path)),
      () => other !== undefined && rmSync(other),
      () => other !== undefined && !other.equals(path) && this.#renameOver(other, path),
      () => below.length > 0 && chmodSync(this.#choose(below), this.#choose([0o755, 0o700, 0o555])),
      () => below.length > 0 && this.#moveFolder(this.#choose(below), path),
      () => below.length > 3 && rmSync(this.#choose(below), { recursive: true }),
    ];
    this.#choose(changes)();
  }

  #replace(path: Buffer, make: () => void): void {
    rmSync(path, { recursive: true, force: true });
    make();
  }

  #linkIfThere(from: Buffer, to: Buffer): void {
    if (lstatSync(from, { throwIfNoEntry: false }) !== undefined) linkSync(from, to);
  }

  #renameOver(from: Buffer, to: Buffer): void {
    if (lstatSync(to, { throwIfNoEntry: false })?.isDirectory() === true) return;
    renameSync(from, to);
  }

  #moveFolder(from: Buffer, to: Buffer): void {
    const inside = Buffer.concat([from, Buffer.from("/")]);
    if (to.equals(from) || to.subarray(0, inside.length).equals(inside)) return;
    if (from.subarray(0, to.length + 1).equals(Buffer.concat([to, Buffer.from("/")]))) return;
    rmSync(to, { recursive: true, force: true });
    renameSync(from, to);
  }

  #sparse(path: Buffer): void {
    const file = openSync(path, "w");
    ftruncateSync(file, 1 << 20);
    writeSync(file, "in the middle", 1 << 18);
    closeSync(file);
  }
}
