import { describe } from "vitest";
import { driverContract } from "../support/driver-contract.ts";
import { missing, needs } from "../support/skip.ts";

describe("the driver native", needs("linux", missing("root") === undefined ? "root" : "user-namespaces"), () => {
  driverContract("native");
});

describe("DRV-4 the driver folder", () => {
  driverContract("folder");
});
