/** Indents JSON. The order and the notation of names and values do not change. */

// An agent may send thousands of nested brackets; indenting them all would exhaust the memory.
const DEEPEST = 50;

/** Indents a definition that was saved as JSON; returns any other text unchanged. */
export function formatted(source: string): string {
  const text = source.trimStart().startsWith("{") ? formattedJson(source) : null;
  return text === null ? source : `${text}\n`;
}

/** Null if the text is not JSON. */
export function formattedJson(source: string): string | null {
  if (!isJson(source)) return null;
  let text = "";
  let depth = 0;
  let last = "";
  const line = () => `\n${"  ".repeat(Math.min(depth, DEEPEST))}`;
  for (const token of tokensOf(source)) {
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
  return text;
}

function* tokensOf(source: string): Generator<string> {
  const next = /["{}[\],:]|[^\s"{}[\],:]+/g;
  for (let found = next.exec(source); found !== null; found = next.exec(source)) {
    // Not one pattern for a whole string: a long string with many escapes would overflow the regex engine.
    if (found[0] === '"') next.lastIndex = endOfText(source, found.index);
    yield source.slice(found.index, next.lastIndex);
  }
}

function endOfText(source: string, begin: number): number {
  const mark = /["\\]/g;
  mark.lastIndex = begin + 1;
  for (let found = mark.exec(source); found !== null; found = mark.exec(source)) {
    if (found[0] === '"') return mark.lastIndex;
    mark.lastIndex += 1;
  }
  return source.length;
}

function isJson(source: string): boolean {
  try {
    JSON.parse(source);
    return true;
  } catch {
    return false;
  }
}
