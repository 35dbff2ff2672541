/** The plain types of the SDK are those of the contracts. */
import { describe, expect, expectTypeOf, test } from "vitest";
import { renderDataPages } from "../../scripts/sdk-docs.ts";
import { renderTypes } from "../../scripts/sdk-types.ts";
import type { InputOf, OperationName, OutputOf } from "../../src/base/schema/contracts.ts";
import type { CommandEnd } from "../../src/base/schema/command.ts";
import type { ErrorCode } from "../../src/base/schema/errors.ts";
import type { VivEvent } from "../../src/base/schema/event.ts";
import type { RunEvent } from "../../src/base/schema/run.ts";
import type { ErrorCode as PlainErrorCode } from "../../src/interfaces/sdk/types/error-code.ts";
import type { VivariumEvent } from "../../src/interfaces/sdk/types/events.ts";
import type { Operations } from "../../src/interfaces/sdk/types/operations.ts";
import type { RunEvent as PlainRunEvent } from "../../src/interfaces/sdk/types/runs.ts";
import type { CommandEnd as PlainCommandEnd } from "../../src/interfaces/sdk/types/sandboxes.ts";
import { projectFiles } from "./files.ts";

/** Operations whose plain types let a caller pass what the contract has not, or hide what it answers. */
type Wrong = {
  [Name in OperationName]: Operations[Name]["input"] extends InputOf<Name>
    ? OutputOf<Name> extends Operations[Name]["output"]
      ? Operations[Name]["output"] extends OutputOf<Name>
        ? never
        : Name
      : Name
    : Name;
}[OperationName];

/** Files by their names without folder. */
function written(pattern: RegExp): Record<string, string> {
  return Object.fromEntries(projectFiles(pattern).map(({ path, text }) => [path.split("/").at(-1), text]));
}

describe("src/interfaces/sdk/types and its pages in docs/sdk", () => {
  test("are what `node scripts/sdk-types.ts` makes of the contracts: run it after a change of them", () => {
    const types = renderTypes();
    expect(written(/^src\/interfaces\/sdk\/types\//)).toEqual(Object.fromEntries(types));
    expect(written(/^docs\/sdk\/(types|operations)\.md$/)).toEqual(Object.fromEntries(renderDataPages(types)));
  });

  test("says the same as the schemas, as the compiler sees them", () => {
    expectTypeOf<keyof Operations>().toEqualTypeOf<OperationName>();
    // A size in its answer may be many things, which is plainly `unknown`.
    expectTypeOf<Exclude<Wrong, "importPolicy">>().toEqualTypeOf<never>();
    expectTypeOf<PlainErrorCode>().toEqualTypeOf<ErrorCode>();
    expectTypeOf<CommandEnd>().toExtend<PlainCommandEnd>();
    expectTypeOf<VivEvent>().toExtend<VivariumEvent>();
    expectTypeOf<RunEvent>().toExtend<PlainRunEvent>();
  });
});
