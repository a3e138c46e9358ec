/** A definition that was saved as JSON, one thing to a line; any other text as it is. Every value stays as it was written. */

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

export function laidOut(source: string): string {
  if (!isJson(source)) return source;
  let text = "";
  let depth = 0;
  let last = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const token of source.match(TOKENS) ?? []) {
    const opened = last === "{" || last === "[";
    if (token === "}" || token === "]") {
      depth -= 1;
      text += opened ? token : line() + token;
    } else if (token === ",") text += token;
    else if (token === ":") text += ": ";
    else {
      text += opened || last === "," ? line() + token : token;
      if (token === "{" || token === "[") depth += 1;
    }
    last = token;
  }
  return `${text}\n`;
}

function isJson(source: string): boolean {
  if (!source.trimStart().startsWith("{")) return false;
  try {
    JSON.parse(source);
    return true;
  } catch {
    return false;
  }
}
