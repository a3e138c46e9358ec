// A textlint plugin for the web UI's TypeScript: shows textlint the texts that a user can read (JSX text, string
// literals, the fixed parts of templates) as paragraphs at their places in the file. Comments, imports and types
// are left out.
import { parse } from "@babel/parser";

const HIDDEN = new Set(["ImportDeclaration", "ExportAllDeclaration", "TSLiteralType", "TSImportType"]);
const QUOTES_LENGTH = 1;

function* textsOf(node) {
  if (HIDDEN.has(node.type)) return;
  if (node.type === "JSXText" || node.type === "TemplateElement") yield [node.start, node.end];
  if (node.type === "StringLiteral") yield [node.start + QUOTES_LENGTH, node.end - QUOTES_LENGTH];
  for (const child of Object.values(node).flat()) {
    if (typeof child?.type === "string" && typeof child.start === "number") yield* textsOf(child);
  }
}

function lineStartsOf(source) {
  const starts = [0];
  for (let at = source.indexOf("\n"); at !== -1; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function documentOf(source) {
  const starts = lineStartsOf(source);
  const position = (offset) => {
    const line = starts.findLastIndex((start) => start <= offset);
    return { line: line + 1, column: offset - starts[line] };
  };
  const node = (type, [start, end], rest) => ({
    type,
    raw: source.slice(start, end),
    range: [start, end],
    loc: { start: position(start), end: position(end) },
    ...rest,
  });
  const { program } = parse(source, { sourceType: "module", plugins: ["typescript", "jsx"] });
  const paragraphs = [...textsOf(program)]
    .filter(([start, end]) => /\p{L}/u.test(source.slice(start, end)))
    .map((range) =>
      node("Paragraph", range, { children: [node("Str", range, { value: source.slice(...range) })] }),
    );
  return node("Document", [0, source.length], { children: paragraphs });
}

class UiStrings {
  availableExtensions() {
    return [".ts", ".tsx"];
  }

  processor() {
    return {
      preProcess: documentOf,
      postProcess: (messages, filePath) => ({ messages, filePath: filePath ?? "<text>" }),
    };
  }
}

export default { Processor: UiStrings };
