/** What a running sandbox gets when it asks for more, and what waits for a person. */
import { describe, expect, test } from "vitest";
import { grantedWithoutAsking } from "../../src/sandbox/start/admission.ts";
import { ProjectConfig, UserConfig } from "../../src/base/schema/config.ts";
import { ResourcesInput } from "../../src/base/schema/gateway.ts";

const GIB = 1024 ** 3;
const now = { cpus: 2, memoryBytes: 4 * GIB, diskBytes: 10 * GIB, processes: 4096 };
const granted = (policy: object, ceilings: object = {}, row: object = { givenLimits: {} }, limits: object = {}) =>
  grantedWithoutAsking({ limits: now, ...row }, ProjectConfig.parse({ policy, limits }), UserConfig.parse({ ceilings }));

describe("what is granted without a person", () => {
  test("LIM-5: is 4 CPUs and 8 GiB unless a config or a person says otherwise", () => {
    expect(granted({})).toEqual({ cpus: 4, memoryBytes: 8 * GIB });
  });

  test("LIM-2: is the project's ceiling, never over the machine's", () => {
    expect(granted({ ceiling: { cpus: 16, memory: "32g" } })).toEqual({ cpus: 16, memoryBytes: 32 * GIB });
    expect(granted({ ceiling: { cpus: 3 } })).toEqual({ cpus: 3, memoryBytes: 8 * GIB });
    expect(granted({ ceiling: { cpus: 16, memory: "32g" } }, { cpus: 6, memory: "12g" })).toEqual({ cpus: 6, memoryBytes: 12 * GIB });
  });

  test("LIM-2: a project that no person trusted can only lower it", () => {
    const tightenOnly = true;
    expect(granted({ ceiling: { cpus: 16, memory: "32g" }, tightenOnly })).toEqual({ cpus: 4, memoryBytes: 8 * GIB });
    expect(granted({ ceiling: { cpus: 3, memory: "5g" }, tightenOnly })).toEqual({ cpus: 3, memoryBytes: 5 * GIB });
  });

  test("is what a person gave the sandbox, whatever else is granted", () => {
    const small = { ...now, memoryBytes: GIB / 4 };
    expect(granted({}, {}, { limits: small, givenLimits: { memoryBytes: GIB / 4 } })).toEqual({ cpus: 4, memoryBytes: GIB / 4 });
    const ceiling = { cpus: 16, memory: "32g" };
    expect(granted({ ceiling }, {}, { limits: small, givenLimits: { cpus: 2, memoryBytes: GIB / 4 } })).toEqual({
      cpus: 2,
      memoryBytes: GIB / 4,
    });
    expect(granted({}, {}, { limits: small, givenLimits: { memoryBytes: GIB } }), "after it gave some back").toMatchObject({
      memoryBytes: GIB,
    });
  });

  test("is the limit of the project's config, unless that names another ceiling", () => {
    const small = { limits: { ...now, memoryBytes: GIB }, givenLimits: {} };
    expect(granted({}, {}, small, { memory: "1g" })).toEqual({ cpus: 4, memoryBytes: GIB });
    expect(granted({ ceiling: { memory: "6g" } }, {}, small, { memory: "1g" })).toEqual({ cpus: 4, memoryBytes: 6 * GIB });
  });

  test("is a lower limit of a row that does not say who gave it", () => {
    expect(granted({}, {}, { limits: { ...now, memoryBytes: GIB / 4 } })).toEqual({ cpus: 4, memoryBytes: GIB / 4 });
    expect(granted({}, {}, {})).toEqual({ cpus: 4, memoryBytes: 8 * GIB });
  });

  test("is what it has already, where that is more", () => {
    expect(granted({ ceiling: { cpus: 1, memory: "1g" } })).toEqual({ cpus: 2, memoryBytes: 4 * GIB });
  });
});

describe("a request for resources", () => {
  test.each([
    { input: { cpus: 4, memoryBytes: 8 * GIB, reason: "large" }, cpus: 4, memoryBytes: 8 * GIB },
    { input: { cpu: "4", memory: "8Gi" }, cpus: 4, memoryBytes: 8 * GIB },
    { input: { cpu: "1.5" }, cpus: 1.5, memoryBytes: undefined },
    { input: { memory: "512m" }, cpus: undefined, memoryBytes: GIB / 2 },
  ])("LIM-5: is understood as $input", ({ input, cpus, memoryBytes }) => {
    expect(ResourcesInput.parse(input)).toMatchObject({ cpus, memoryBytes });
  });

  test.each([{}, { cpu: "many" }, { cpu: "-1" }, { memory: "1" }, { cpus: 1e9 }, { cpus: 2, reason: "\u001b[2J" }, { cpus: 2, who: "me" }])(
    "is refused as %j",
    (input) => expect(ResourcesInput.safeParse(input).success).toBe(false),
  );
});
