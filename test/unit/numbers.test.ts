/** Numbers that come as text have one spelling, wherever they come in. */
import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { parseDuration, parseInteger, parsePort, parseValue } from "../../src/interfaces/cli/values.ts";
import { readNumber } from "../../src/work/checks/checks.ts";
import type { LineEnd } from "../../src/work/checks/line.ts";
import { signalNumber } from "../../src/sandbox/commands/causes.ts";
import { CONTRACTS } from "../../src/base/schema/contracts.ts";
import { AnswerInput, CoordinateInput, DecisionsQuery, MessagesQuery, WaitQuery } from "../../src/base/schema/gateway.ts";
import { ByteSize, Duration } from "../../src/base/schema/units.ts";
import { STREAM_ROUTES } from "../../src/base/schema/stream-routes.ts";

/** Each is a number to some parser: JavaScript's, C's, or Python's. */
const ODD = [
  "1e3",
  "1E0",
  "0x1",
  "0b1",
  "0o1",
  "+1",
  "-0",
  "01",
  "00",
  "1.",
  ".5",
  "1.0e0",
  " 1",
  "1 ",
  "1\n",
  "",
  "1_0",
  "\uff11",
  "1,0",
  "\u0661",
  "NaN",
  "Infinity",
  "1n",
];

const QUERIES = { CoordinateInput, AnswerInput, MessagesQuery, DecisionsQuery, WaitQuery };
const fields = Object.entries({ ...CONTRACTS, ...STREAM_ROUTES }).flatMap(([name, { input }]) => named(name, input));
const numeric = [...fields, ...Object.entries(QUERIES).flatMap(([name, input]) => named(name, input))].filter(
  ({ type }) => typeof type.safeParse("1").data === "number",
);

function named(name: string, input: z.ZodObject): { name: string; type: z.ZodType }[] {
  return Object.entries(input.shape as Record<string, z.ZodType>).map(([field, type]) => ({ name: `${name}.${field}`, type }));
}

describe("a number in a request", () => {
  test("is found in queries of many operations", () => {
    expect(numeric.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "listEvents.limit",
        "listFiles.depth",
        "events.after",
        "tunnel.port",
        "explainPolicy.level",
        "MessagesQuery.wait",
      ]),
    );
  });

  test.each(numeric)("has one spelling as $name", ({ name, type }) => {
    expect(type.parse("1")).toBe(1);
    const mode = name === "writeFile.mode";
    for (const text of ODD.filter((odd) => !mode || !/^0[01]$/.test(odd)))
      expect([text, type.safeParse(text).success]).toEqual([text, false]);
    for (const other of [true, false, null, [], ["1"], {}, 1n]) expect(type.safeParse(other).success).toBe(false);
  });
});

describe("a number on the command line", () => {
  const option = (type: "integer" | "number" | "size" | "duration") => ({ type, value: "N", summary: "" }) as const;
  const readers: Record<string, (text: string) => unknown> = {
    integer: (text) => parseValue("--n", option("integer"), text),
    number: (text) => parseValue("--n", option("number"), text),
    size: (text) => parseValue("--n", option("size"), text),
    duration: (text) => parseValue("--n", option("duration"), `${text}s`),
    port: (text) => parsePort("PORT", text),
    position: (text) => parseInteger("N", text),
    since: (text) => parseDuration("--since", `${text}m`),
  };
  test.each(Object.keys(readers))("has one spelling as %s", (name) => {
    expect(() => readers[name]?.("1")).not.toThrow();
    const spaced = name === "duration" || name === "since" ? "1 " : null;
    for (const text of ODD.filter((odd) => odd !== spaced))
      expect(() => readers[name]?.(text), JSON.stringify(text)).toThrow(/takes a|is a port/);
  });

  test("has one spelling as the number of a signal", () => {
    expect([signalNumber("9"), signalNumber("09"), signalNumber("1e0")]).toEqual([9, undefined, undefined]);
  });
});

describe("a number that a program measured", () => {
  const read = (stdout: string) => readNumber({ end: { exitCode: 0 } as LineEnd["end"], stdout });
  test("may have an exponent, as programs print it, and no other base", () => {
    expect(["3\n", "-1.5", "1e-05", ".5", "text\n7"].map(read)).toEqual([3, -1.5, 0.000_01, 0.5, 7]);
    expect(["0x10", "0b1", "Infinity", "1_0", "", "1e999"].map(read)).toEqual([null, null, null, null, null, null]);
  });
});

describe("a size and a duration in a config", () => {
  test("are a number with a unit, in one spelling", () => {
    expect([
      ByteSize.parse("1.5g"),
      ByteSize.parse("512 MiB"),
      ByteSize.parse("0"),
      Duration.parse("0.5h"),
      Duration.parse("90 s"),
    ]).toEqual([1.5 * 1024 ** 3, 512 * 1024 ** 2, 0, 1_800_000, 90_000]);
    for (const text of ODD) {
      expect([text, ByteSize.safeParse(`${text}g`).success]).toEqual([text, text === "1 "]);
      expect([text, Duration.safeParse(`${text}h`).success]).toEqual([text, text === "1 "]);
    }
  });
});
