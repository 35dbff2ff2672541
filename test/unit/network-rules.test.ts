import { describe, expect, test } from "vitest";
import { proxyEnvironment } from "../../src/rules/network/environment.ts";
import { decide, matches, type Ruling } from "../../src/rules/network/rules.ts";
import type { SandboxRow } from "../../src/base/store/rows.ts";
import { narrowedNetwork } from "../../src/sandbox/permissions/network-narrowing.ts";
import { Networks } from "../../src/sandbox/permissions/networks.ts";
import { NO_NETWORK, networkRules, ProjectNetwork, UserNetwork, type NetworkRules } from "../../src/base/schema/network.ts";

const PUBLIC: NetworkRules = { ...NO_NETWORK, mode: "public" };
const LIST: NetworkRules = {
  ...NO_NETWORK,
  mode: "allow-list",
  allow: [
    { host: "example.com", tcp: false },
    { host: "*.cdn.test", tcp: false },
    { host: "git.test", ports: [22], tcp: true },
  ],
};
const codeOf = (ruling: Ruling): string => (ruling.verdict === "allow" ? `allow by ${ruling.rule}` : ruling.code);

describe("rules", () => {
  test("a pattern is a name, or all names below one", () => {
    expect(matches("example.com", "example.com")).toBe(true);
    for (const host of ["www.example.com", "example.com.evil.test", "xexample.com", "example.co"])
      expect(matches("example.com", host), host).toBe(false);
    expect(matches("*.example.com", "a.example.com")).toBe(true);
    expect(matches("*.example.com", "a.b.example.com")).toBe(true);
    for (const host of ["example.com", "xexample.com", ".example.com", "a.example.com.evil.test"])
      expect(matches("*.example.com", host), host).toBe(false);
  });

  test.each<[string, NetworkRules, string, number, string]>([
    ["off reaches nothing", NO_NETWORK, "example.com", 443, "network_off"],
    ["public reaches every name", PUBLIC, "example.com", 443, "allow by public"],
    ["PX-08: public has no port but those of the web", PUBLIC, "example.com", 22, "port_closed"],
    ["public has no private address", PUBLIC, "10.0.0.1", 80, "private_address"],
    ["public has no loopback", PUBLIC, "::1", 80, "private_address"],
    ["a list reaches what is on it", LIST, "example.com", 443, "allow by allow example.com"],
    ["a list reaches what is below a pattern", LIST, "a.cdn.test", 80, "allow by allow *.cdn.test"],
    ["a list does not reach what is not on it", LIST, "evil.test", 443, "host_not_allowed"],
    ["a list does not reach the name above a pattern", LIST, "cdn.test", 443, "host_not_allowed"],
    ["PX-08: a list opens only the ports named", LIST, "example.com", 6379, "port_closed"],
    ["a rule with a port opens that port", LIST, "git.test", 22, "allow by allow git.test"],
    ["a rule with a port opens no other", LIST, "git.test", 443, "port_closed"],
    ["NW-04: metadata has no name", PUBLIC, "metadata.google.internal", 80, "metadata"],
    ["NW-04: metadata has no address", PUBLIC, "169.254.169.254", 80, "metadata"],
    [
      "NW-04: metadata is not opened by a list",
      { ...LIST, allow: [{ host: "169.254.169.254", tcp: true }] },
      "169.254.169.254",
      80,
      "metadata",
    ],
    ["NET-2: production is never reached", { ...LIST, production: ["*.example.com", "example.com"] }, "example.com", 443, "production"],
    ["NET-2: not in public mode either", { ...PUBLIC, production: ["prod.test"] }, "prod.test", 443, "production"],
  ])("%s", (_, rules, host, port, code) => expect(codeOf(decide(rules, [], host, port))).toBe(code));

  test("an address in a config is the address, however it is spelled, and what is none is refused", () => {
    const user = UserNetwork.parse({ private: [{ host: "fd00:0:0::0001", ports: [80] }], production: ["2001:0DB8::1".toLowerCase()] });
    const rules = { ...PUBLIC, production: user.production };
    expect(codeOf(decide(rules, user.private, "fd00::1", 80))).toBe("allow by private fd00::1");
    expect(codeOf(decide(rules, [], "2001:db8::1", 443))).toBe("production");
    expect(() => UserNetwork.parse({ production: ["1::2::3"] })).toThrow("not an address");
  });

  test("NET-2: an address in a row of an earlier version is the address, too, however it is spelled", () => {
    const network = { ...PUBLIC, allow: [{ host: "fd00:0::2", tcp: false }], production: ["2001:0db8::1"] };
    const user = { network: UserNetwork.parse({}) };
    const parts = { user, privateHosts: { of: () => [] }, egress: { use: () => ({}) } } as unknown as ConstructorParameters<
      typeof Networks
    >[0];
    const { rules } = new Networks(parts).report({ id: "x", name: "x", project: "/p", network } as unknown as SandboxRow);
    expect(codeOf(decide(rules, [], "2001:db8::1", 443))).toBe("production");
    expect(rules.allow).toEqual([{ host: "fd00::2", tcp: false }]);
    expect(narrowedNetwork({ network }, ProjectNetwork.parse({}), user.network)?.production).toEqual(["2001:db8::1"]);
  });

  test("a name that no public server knows is answered with what opens it", () => {
    expect(decide(PUBLIC, [], "registry.local", 443)).toMatchObject({
      code: "not_resolved",
      remedy: expect.stringContaining("`viv network allow-private registry.local:443`"),
    });
  });

  test("the user's own config opens a private host on a port, but neither production nor metadata, and not when off", () => {
    const opened = [
      { host: "db.test", ports: [5432], tcp: true },
      { host: "169.254.169.254", ports: [80], tcp: true },
    ];
    expect(decide(LIST, opened, "db.test", 5432)).toEqual({ verdict: "allow", rule: "private db.test", tcp: true, private: true });
    expect(codeOf(decide(LIST, opened, "db.test", 22))).toBe("host_not_allowed");
    expect(codeOf(decide(PUBLIC, opened, "169.254.169.254", 80))).toBe("metadata");
    expect(codeOf(decide({ ...LIST, production: ["db.test"] }, opened, "db.test", 5432))).toBe("production");
    expect(codeOf(decide(NO_NETWORK, opened, "db.test", 5432))).toBe("network_off");
  });

  test("effects are held where one of the configs says so, whatever the other says", () => {
    const none = ProjectNetwork.parse({});
    const user = UserNetwork.parse({});
    expect(networkRules({ ...none, effects: "hold" }, user).effects).toBe("hold");
    expect(networkRules({ ...none, effects: "record" }, { ...user, effects: "hold" }).effects).toBe("hold");
    expect(networkRules(none, user).effects).toBe("record");
  });

  test("the configs together: the project's mode counts, lists add up", () => {
    const user = UserNetwork.parse({ mode: "public", allow: ["a.test"], production: ["p.test"] });
    expect(networkRules(ProjectNetwork.parse({}), user).mode).toBe("public");
    const both = networkRules(
      ProjectNetwork.parse({ mode: "allow-list", allow: [{ host: "b.test", ports: [22] }], production: ["q.test"] }),
      user,
    );
    expect(both).toEqual({
      mode: "allow-list",
      effects: "record",
      variables: true,
      allow: [
        { host: "a.test", tcp: false },
        { host: "b.test", ports: [22], tcp: false },
      ],
      ports: [80, 443],
      production: ["p.test", "q.test"],
    });
  });

  test("NET-1: without any setting it is the public web, on the ports of http and https", () => {
    const usual = networkRules(ProjectNetwork.parse({}), UserNetwork.parse({}));
    expect(usual).toEqual({ mode: "public", allow: [], ports: [80, 443], production: [], effects: "record", variables: true });
    expect(networkRules(ProjectNetwork.parse({ mode: "off" }), UserNetwork.parse({})).mode).toBe("off");
    expect(networkRules(ProjectNetwork.parse({}), UserNetwork.parse({ mode: "off" })).mode).toBe("off");
    expect(networkRules(ProjectNetwork.parse({}), UserNetwork.parse({}), { mode: "off" }).mode).toBe("off");
  });

  test("NET-1: no project and no caller goes over the user's ceiling", () => {
    const user = UserNetwork.parse({ ceiling: "allow-list", allow: ["a.test"] });
    expect(networkRules(ProjectNetwork.parse({}), user)).toMatchObject({ mode: "allow-list", allow: [{ host: "a.test" }] });
    expect(networkRules(ProjectNetwork.parse({ mode: "public" }), user, { mode: "public" }).mode).toBe("allow-list");
    expect(networkRules(ProjectNetwork.parse({ mode: "off" }), user).mode).toBe("off");
    expect(networkRules(ProjectNetwork.parse({ mode: "public" }), UserNetwork.parse({ ceiling: "off" })).mode).toBe("off");
  });

  describe("NET-1: a project that is not trusted", () => {
    const untrusted = (network: object): ProjectNetwork => ({ ...ProjectNetwork.parse(network), tightenOnly: true });
    const wide = { mode: "public", allow: ["a.test", { host: "b.test", ports: [22, 443], tcp: true }], ports: [25, 443] };

    test("narrows the public web: its list counts, without further ports and protocols", () => {
      const rules = networkRules(untrusted({ ...wide, mode: "allow-list" }), UserNetwork.parse({}));
      expect(rules).toMatchObject({ mode: "allow-list", ports: [443] });
      expect(codeOf(decide(rules, [], "a.test", 443))).toBe("allow by allow a.test");
      expect(codeOf(decide(rules, [], "b.test", 443))).toBe("allow by allow b.test");
      expect(decide(rules, [], "b.test", 443)).toMatchObject({ tcp: false });
      expect(codeOf(decide(rules, [], "b.test", 22))).toBe("port_closed");
      expect(codeOf(decide(rules, [], "other.test", 443))).toBe("host_not_allowed");
    });

    test("opens nothing that the user's own rules close", () => {
      expect(networkRules(untrusted(wide), UserNetwork.parse({ mode: "off" })).mode).toBe("off");
      const list = networkRules(untrusted(wide), UserNetwork.parse({ mode: "allow-list", allow: ["mine.test"] }));
      expect(list).toMatchObject({ mode: "allow-list", allow: [{ host: "mine.test" }] });
      expect(codeOf(decide(list, [], "a.test", 443))).toBe("host_not_allowed");
      const web = networkRules(untrusted(wide), UserNetwork.parse({}));
      expect(web).toMatchObject({ mode: "public", ports: [443] });
      expect(codeOf(decide(web, [], "b.test", 22))).toBe("port_closed");
      expect(codeOf(decide(web, [], "a.test", 25))).toBe("port_closed");
      // Trusted, the same rules open all of it.
      const trusted = networkRules(ProjectNetwork.parse(wide), UserNetwork.parse({ mode: "off" }));
      expect(codeOf(decide(trusted, [], "b.test", 22))).toBe("allow by allow b.test");
      expect(codeOf(decide(trusted, [], "a.test", 25))).toBe("allow by allow a.test");
    });

    test("may switch it off, name production and hold effects", () => {
      const rules = networkRules(untrusted({ mode: "off", production: ["p.test"], effects: "hold" }), UserNetwork.parse({}));
      expect(rules).toMatchObject({ mode: "off", production: ["p.test"], effects: "hold" });
    });
  });

  test("a host of a config is a name in lower case, a pattern at its beginning, or an address", () => {
    const taken = (host: string): boolean => ProjectNetwork.safeParse({ allow: [host] }).success;
    for (const host of ["example.com", "*.example.com", "10.0.0.1", "fd00::1", "localhost"]) expect(taken(host), host).toBe(true);
    for (const host of ["*", "*.", "a.*.com", "Example.com", "http://example.com", "example.com:80", "example.com.", "a b", ""])
      expect(taken(host), host).toBe(false);
  });
});

describe("variables inside", () => {
  test("there are none without a network", () => {
    expect(proxyEnvironment(NO_NETWORK, {})).toEqual({});
    expect(proxyEnvironment(undefined, {})).toEqual({});
  });

  test("names that exist nowhere are asked for without the proxy, but those of which a rule speaks", () => {
    const direct = (rules: NetworkRules, opened: readonly string[] = []): string =>
      proxyEnvironment(
        rules,
        {},
        opened.map((host) => ({ host, ports: [80], tcp: false })),
      )["NO_PROXY"] ?? "";
    const local = "localhost,127.0.0.1,::1,0.0.0.0";
    const open = { ...NO_NETWORK, mode: "public" } as const;
    expect(direct(open)).toBe(`${local},.invalid,.localhost,.local,.test`);
    expect(direct({ ...open, allow: [{ host: "*.lab.test", tcp: false }] }, ["nas.local"])).toBe(`${local},.invalid,.localhost`);
    expect(direct({ ...open, production: ["prod.test"] })).toBe(`${local},.invalid,.localhost,.local`);
    expect(direct({ ...open, mode: "allow-list" })).toBe(local);
  });

  test("name the proxy and turn remotes by SSH into HTTPS, and nothing else: what makes a JVM speak at each start is not among them", () => {
    const proxied = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
    const names = Object.keys(proxyEnvironment(PUBLIC, {})).filter((name) => !/^GIT_CONFIG_(COUNT|KEY_\d+|VALUE_\d+)$/.test(name));
    expect(names.toSorted()).toEqual([...proxied, "NODE_USE_ENV_PROXY"].toSorted());
  });

  test("are off by one switch of the user, the project, or the maker of the sandbox, the nearest one counts", () => {
    const rules = (project: object, user: object, asked?: boolean): NetworkRules =>
      networkRules(ProjectNetwork.parse(project), UserNetwork.parse(user), { variables: asked });
    for (const off of [rules({ variables: false }, {}), rules({}, { variables: false }), rules({ variables: true }, {}, false)])
      expect(proxyEnvironment(off, {})).toEqual({});
    for (const on of [rules({}, {}), rules({ variables: true }, { variables: false }), rules({ variables: false }, {}, true)])
      expect(proxyEnvironment(on, {})).toHaveProperty("HTTPS_PROXY");
    expect(
      narrowedNetwork({ network: rules({}, {}, false), networkChosen: {} }, ProjectNetwork.parse({}), UserNetwork.parse({})),
    ).toMatchObject({
      variables: false,
    });
  });

  test("settings that are there already stay", () => {
    const present = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "user.name", GIT_CONFIG_VALUE_0: "x" };
    const variables = proxyEnvironment(LIST, present);
    expect(variables["GIT_CONFIG_KEY_0"]).toBeUndefined();
    const keys = Object.entries(variables).filter(([name]) => name.startsWith("GIT_CONFIG_VALUE_"));
    expect(Number(variables["GIT_CONFIG_COUNT"])).toBe(1 + keys.length);
    expect(keys.map(([, value]) => value)).toContain("git@example.com:");
    expect(keys.map(([, value]) => value)).not.toContain("git@git.test:");
  });
});

describe("what a sandbox still reaches when it is launched again", () => {
  const user = UserNetwork.parse({});
  const narrowed = (network: NetworkRules, networkChosen: object, project: object, own = user): NetworkRules | undefined =>
    narrowedNetwork({ network, networkChosen }, ProjectNetwork.parse(project), own);

  test("is a list that the public web holds, also where the list is gone from the config", () => {
    const web = { ...LIST, allow: LIST.allow.slice(0, 2) };
    expect(narrowed(web, {}, {})).toMatchObject({ mode: "allow-list", allow: web.allow });
    expect(narrowed(LIST, {}, {})?.allow).toEqual(web.allow);
    expect(narrowed(LIST, { allow: LIST.allow.slice(2) }, {})?.allow).toEqual(LIST.allow);
  });

  test("is no more than the configs open by now", () => {
    expect(narrowed(PUBLIC, {}, { mode: "allow-list", allow: ["a.test"] })).toMatchObject({ mode: "allow-list", allow: [] });
    expect(narrowed(PUBLIC, { mode: "public" }, { mode: "off" })?.mode).toBe("public");
    expect(narrowed(PUBLIC, { mode: "public" }, {}, UserNetwork.parse({ ceiling: "off" }))?.mode).toBe("off");
    expect(narrowed({ ...PUBLIC, ports: [80, 443, 8080] }, {}, {})?.ports).toEqual([80, 443]);
    expect(narrowed(PUBLIC, {}, { production: ["p.test"], effects: "hold" })).toMatchObject({ production: ["p.test"], effects: "hold" });
  });
});
