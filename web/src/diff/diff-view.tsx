/** One file's diff, with syntax colours, words marked within lines, and comments between lines. Loaded with the first diff. */
import { FileDiff } from "@pierre/diffs/react";
import {
  getFiletypeFromFileName,
  parsePatchFiles,
  registerCustomTheme,
  type DiffLineAnnotation,
  type FileDiffMetadata,
} from "@pierre/diffs";
import { useMemo, type ReactNode } from "react";
import { languageOf } from "./languages.ts";
import { useDark, useWide } from "../parts/screen.ts";

/** The colours of the usual themes are too pale on the green and the red of changed lines. */
const THEMES = { light: "github-light-high-contrast", dark: "github-dark-high-contrast" } as const;
registerCustomTheme(THEMES.light, async () => {
  const { default: theme } = await import("@shikijs/themes/github-light-high-contrast");
  // Comments are too pale there even in this theme.
  return JSON.parse(JSON.stringify(theme).replaceAll(/#66707b/gi, "#4a535d")) as typeof theme;
});
registerCustomTheme(THEMES.dark, async () => (await import("@shikijs/themes/github-dark-high-contrast")).default);

export interface LineComment {
  readonly id: string;
  readonly side: "additions" | "deletions";
  readonly line: number;
  readonly text: string;
}

interface Props {
  readonly patch: string;
  /** Side by side where there is room, if left out. */
  readonly style?: "unified";
  readonly comments?: readonly LineComment[];
  /** A line was pressed. */
  readonly onLine?: (side: LineComment["side"], line: number) => void;
  readonly renderComment?: (comment: LineComment) => ReactNode;
}

/** A language that is not among ours is shown without colours. */
function fileOf(patch: string): FileDiffMetadata | undefined {
  const [file] = parsePatchFiles(patch).flatMap(({ files }) => files);
  return file === undefined ? undefined : { ...file, lang: languageOf(file.name, getFiletypeFromFileName(file.name)) };
}

export default function DiffView({ patch, style, comments = [], onLine, renderComment }: Props): ReactNode {
  const wide = useWide();
  const dark = useDark();
  const file = useMemo(() => fileOf(patch), [patch]);
  const annotations = comments.map((comment): DiffLineAnnotation<LineComment> => ({
    side: comment.side,
    lineNumber: comment.line,
    metadata: comment,
  }));
  if (file === undefined) return <pre className="block">{patch}</pre>;
  return (
    <FileDiff<LineComment>
      fileDiff={file}
      lineAnnotations={annotations}
      renderAnnotation={({ metadata }) => renderComment?.(metadata)}
      options={{
        theme: THEMES,
        themeType: dark ? "dark" : "light",
        diffStyle: style ?? (wide ? "split" : "unified"),
        overflow: "wrap",
        disableFileHeader: true,
        lineDiffType: "word",
        ...(onLine === undefined
          ? {}
          : { lineHoverHighlight: "number", onLineNumberClick: ({ lineNumber, annotationSide }) => onLine(annotationSide, lineNumber) }),
      }}
    />
  );
}
