/** Promise.withResolvers, which Node 20 lacks. */

export interface Settlable<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

export function settlable<Value>(): Settlable<Value> {
  let resolve: Settlable<Value>["resolve"] = () => undefined;
  let reject: Settlable<Value>["reject"] = () => undefined;
  const promise = new Promise<Value>((resolved, rejected) => {
    resolve = resolved;
    reject = rejected;
  });
  return { promise, resolve, reject };
}
