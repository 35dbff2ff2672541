/** Runtimes that lack the symbols of `await using` get them, as TypeScript's output for those runtimes needs them. */
for (const name of ["dispose", "asyncDispose"] as const) {
  if (!(name in Symbol)) Object.defineProperty(Symbol, name, { value: Symbol.for(`Symbol.${name}`) });
}
