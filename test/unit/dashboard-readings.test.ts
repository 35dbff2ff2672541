/** What pages make of values over time and of records of the network. */
import { describe, expect, test } from "vitest";
import type { AuditRecord } from "../../src/base/schema/audit.ts";
import { ratesOf, withReading, type Reading } from "../../web/src/parts/readings.ts";
import { requestsOf } from "../../web/src/sandbox/request-rows.ts";

describe("values over time", () => {
  test("a processor that is busy all the time is one processor, however far apart the answers are", () => {
    const busy = [0, 1_200, 3_200, 63_200].map((at) => ({ at, value: 500 + at }));
    expect(ratesOf(busy).map(({ value }) => value)).toEqual([1, 1, 1]);
    expect(
      ratesOf([
        { at: 0, value: 900 },
        { at: 2_000, value: 100 },
      ]).map(({ value }) => value),
    ).toEqual([0]);
    expect(ratesOf([{ at: 0, value: 900 }])).toEqual([]);
  });

  test("answers that events brought at once are one value, and the oldest values go", () => {
    let kept: readonly Reading[] = [];
    for (let at = 0; at < 1_000_000; at += 250) kept = withReading(kept, { at, value: at });
    expect(kept).toHaveLength(300);
    expect(kept.at(-1)?.at).toBe(999_000);
    expect(kept.every(({ at }, index) => index === 0 || at - (kept[index - 1]?.at ?? 0) >= 1_000)).toBe(true);
  });
});

describe("requests to the network", () => {
  const record = (sequence: number, action: string, more: Partial<AuditRecord> = {}): AuditRecord => ({
    sequence,
    at: "2026-01-01T00:00:00.000Z",
    clockBack: false,
    previous: "",
    hash: "",
    actor: { kind: "agent", name: "box" },
    action,
    target: "example.com:443",
    arguments: { protocol: "tls", address: "192.0.2.1" },
    label: "AUTONOMOUS (whitelisted)",
    rule: null,
    reason: null,
    sandbox: "box",
    snapshot: null,
    ...more,
  });
  const ended = (sequence: number, sentBytes: number, receivedBytes: number): AuditRecord =>
    record(sequence, "network.ended", { arguments: { protocol: "tls", address: "192.0.2.1", sentBytes, receivedBytes } });

  test("have the bytes of their own end, the newest first; what was denied has none", () => {
    const rows = requestsOf([
      record(1, "network.request"),
      record(2, "network.lookup", { arguments: { protocol: "dns" } }),
      record(3, "network.request"),
      record(4, "network.request", { label: "DENIED", target: "other.example:80", reason: "No rule allows it." }),
      ended(5, 10, 20),
      ended(6, 30, 40),
      record(7, "network.request"),
    ]);
    expect(rows.map(({ record: { sequence }, ended: end }) => [sequence, end?.sentBytes, end?.receivedBytes])).toEqual([
      [7, undefined, undefined],
      [4, undefined, undefined],
      [3, 30, 40],
      [1, 10, 20],
    ]);
    expect(rows[0]?.what).toBe("tls");
  });
});
