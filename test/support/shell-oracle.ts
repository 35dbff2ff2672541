/** A shell parser that others wrote (unbash), brought into the form of ours, so that both can be compared. */
import { isDeepStrictEqual } from "node:util";
import { forEachChild, parse, type Assignment, type Command, type Redirection, type SyntaxNode, type Word, type WordPart } from "unbash";
import { UNKNOWN } from "../../src/base/policy/pattern.ts";
import type { Script, SimpleCommand } from "../../src/base/policy/shell/script.ts";

/** In the order of the alphabet: parsers find them in different orders. */
export interface Found {
  /** Simple commands, each as one line of text. */
  readonly commands: readonly string[];
  /** Variables that change without an assignment of their own: those of loops, calculations and defaults. */
  readonly variables: readonly string[];
}

/** How what we find differs from what the other parser finds; undefined where it does not. */
export function difference(ours: Found, theirs: Found): { ours: string[]; theirs: string[]; missed: string[] } | undefined {
  const missed = theirs.variables.filter((name) => !ours.variables.includes(name));
  if (missed.length === 0 && isDeepStrictEqual(ours.commands, theirs.commands)) return undefined;
  const without = (some: readonly string[], others: readonly string[]): string[] => some.filter((each) => !others.includes(each));
  return { ours: without(ours.commands, theirs.commands), theirs: without(theirs.commands, ours.commands), missed };
}

/** What the other parser finds; undefined where it takes the text for an error. */
export function oracle(text: string): Found | undefined {
  const commands: string[] = [];
  const variables: string[] = [];
  let isWhole = true;
  const visit = (node: SyntaxNode): void => {
    if (node.type === "Script" && "errors" in node && (node.errors?.length ?? 0) > 0) isWhole = false;
    if (node.type === "Command") commands.push(ofCommand(node));
    if (node.type === "Redirected") commands.push(line([], [], node.redirects.map(ofRedirect)));
    variables.push(...variablesOf(node));
    forEachChild(node, visit);
  };
  visit(parse(text));
  return isWhole ? { commands: commands.toSorted(), variables: variables.toSorted() } : undefined;
}

/** The same of what our own parser finds: a variable that changes is an assignment of nothing known, without a command. */
export function found({ commands }: Script): Found {
  const isVariable = ({ words, assignments, redirects }: SimpleCommand): boolean =>
    words.length + redirects.length === 0 && assignments.length === 1 && assignments[0]?.value.text === CHANGED;
  return {
    commands: commands
      .filter((command) => !isVariable(command))
      .map(ofOurs)
      .toSorted(),
    variables: commands
      .filter(isVariable)
      .flatMap(({ assignments }) => assignments.map(({ name }) => name))
      .toSorted(),
  };
}

/** As the parser writes the value of such a variable. */
const CHANGED = "...";

function ofOurs({ words, assignments, redirects }: SimpleCommand): string {
  return line(
    assignments.map(({ name, value }) => [name, value.match]),
    words.map(({ match }) => match),
    redirects.map(({ operator, target, body }) => [operator, target.match, body?.match]),
  );
}

type Redirected = readonly [operator: string, target: string, body: string | undefined];

function line(assignments: readonly (readonly [string, string])[], words: readonly string[], redirects: readonly Redirected[]): string {
  return JSON.stringify({
    // Values of a list are apart by one blank each, however they are written.
    assignments: assignments.map(([name, value]) => `${name}=${value.trim()}`),
    words,
    redirects: redirects.map(([operator, target, body]) => ({
      operator: operator === "&>>" ? "&>" : operator,
      target,
      // The end of the text may end it, too.
      body: (operator === "<<-" ? body?.replaceAll(/^\t+/gm, "") : body)?.replace(/\n$/, ""),
    })),
  });
}

function variablesOf(node: SyntaxNode): string[] {
  switch (node.type) {
    case "For":
    case "Select":
      return [node.name.value];
    case "Coproc":
      return node.name === undefined ? [] : [node.name.value];
    case "FileDescriptorVariable":
      return [node.name];
    case "ParameterExpansion":
      return node.operation?.type === "Default" && /^:?=$/.test(node.operation.operator) ? [node.parameter] : [];
    case "ArithmeticBinary":
      return /^(?:[-+*/%&|^]|<<|>>)?=$/.test(node.operator) ? calculated(node.left) : [];
    case "ArithmeticUnary":
      return node.operator === "++" || node.operator === "--" ? calculated(node.operand) : [];
    default:
      return [];
  }
}

function calculated(node: SyntaxNode): string[] {
  return node.type === "ArithmeticWord" && /^[A-Za-z_]\w*$/.test(node.value) ? [node.value] : [];
}

function ofCommand({ name, prefix, args, redirects }: Command): string {
  const assignments = prefix.flatMap((each) => (each.type === "Assignment" ? [[each.name, ofValue(each)] as const] : []));
  const words = [...(name === undefined ? [] : [name]), ...args];
  return line(assignments, words.map(ofArgument), redirects.map(ofRedirect));
}

/** What stands after the name of `export` and the like is a word to us. */
function ofArgument(argument: Word | Assignment): string {
  if (argument.type === "Word") return ofWord(argument);
  const subscript = argument.index === undefined ? "" : `[${ofWord(argument.index)}]`;
  return `${argument.name}${subscript}${argument.append === true ? "+" : ""}=${ofValue(argument)}`;
}

function ofValue({ value }: Assignment): string {
  return value.type === "Word" ? ofWord(value) : value.elements.map(ofWord).join(" ");
}

function ofRedirect(redirect: Redirection): Redirected {
  if (redirect.type !== "HereDoc") return [redirect.operator, redirect.target === undefined ? "" : ofWord(redirect.target), undefined];
  const { body, delimiter, operator } = redirect;
  return [operator, delimiter?.value ?? "", body.parts === undefined ? body.text : joined(body.parts)];
}

function ofWord({ value, parts }: Word): string {
  return parts === undefined ? value : joined(parts);
}

/** Parts that are known only when the command runs are UNKNOWN, several in a row once. */
function joined(parts: readonly WordPart[]): string {
  let text = "";
  for (const part of parts) {
    // {a,b} makes several words of what stands before it, too.
    if (part.type === "BraceExpansion") text = "";
    const piece = ofPart(part);
    text += text.endsWith(UNKNOWN) && piece.startsWith(UNKNOWN) ? piece.slice(UNKNOWN.length) : piece;
  }
  return text;
}

function ofPart(part: WordPart): string {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return part.value;
    case "DoubleQuoted":
    case "LocaleString":
      return joined(part.parts);
    case "Glob":
      return part.kind === "bracket" ? `[${joined(part.parts)}]` : part.text;
    case "ExtendedGlob":
      return part.text;
    default:
      return UNKNOWN;
  }
}
