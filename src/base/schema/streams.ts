/** What travels over WebSockets: text messages are this JSON. */
import { z } from "zod";
import { Command, CommandEnd, CommandSpec, TerminalSize } from "./command.ts";
import { DesktopHolder } from "./desktop.ts";

/** First message of a client on /sandboxes/{sandbox}/exec. */
export const ExecOpen = CommandSpec.extend({
  terminal: TerminalSize.optional().describe("Give it a terminal of this size."),
  stdin: z.boolean().default(false).describe("Whether standard input follows."),
  onDisconnect: z.enum(["kill", "keep"]).default("kill").describe("What happens to the command when the caller goes away."),
}).meta({ id: "ExecOpen" });
export type ExecOpen = z.infer<typeof ExecOpen>;

/** What a caller says to its command. */
export const ClientMessage = z
  .discriminatedUnion("type", [
    z.strictObject({ type: z.literal("resize"), ...TerminalSize.shape }),
    z.strictObject({ type: z.literal("signal"), signal: z.string().max(16) }),
    z.strictObject({ type: z.literal("stdin-end") }),
  ])
  .meta({ id: "ClientMessage" });
export type ClientMessage = z.infer<typeof ClientMessage>;

const ToldError = z.object({ code: z.string(), message: z.string(), remedy: z.string() }).meta({ id: "ToldError" });

/** What the server says of a command. */
export const ServerMessage = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("started"), command: Command }),
    z.object({ type: z.literal("gap"), bytes: z.number().int() }),
    z.object({ type: z.literal("exit"), end: CommandEnd }),
    z.object({ type: z.literal("error"), error: ToldError }),
  ])
  .meta({ id: "ServerMessage" });
export type ServerMessage = z.infer<typeof ServerMessage>;

/** Of a tunnel: this side sends no more, and still listens. */
export const TunnelMessage = z.strictObject({ type: z.literal("end") }).meta({ id: "TunnelMessage" });
export type TunnelMessage = z.infer<typeof TunnelMessage>;

/** What the server says of a port of the machine that it has opened for a caller. */
export const PortMessage = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("listening"), local: z.number().int().describe("The port on 127.0.0.1.") }),
    z.object({ type: z.literal("failed"), error: ToldError }),
  ])
  .meta({ id: "PortMessage" });
export type PortMessage = z.infer<typeof PortMessage>;

/** What the server says to a viewer of a screen: at the beginning and at each change who has keys and pointer, and at last the end. */
export const ScreenMessage = z
  .discriminatedUnion("type", [TunnelMessage, z.object({ type: z.literal("control"), holder: DesktopHolder })])
  .meta({ id: "ScreenMessage" });
export type ScreenMessage = z.infer<typeof ScreenMessage>;
