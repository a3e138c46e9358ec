/**
 * Quotes text for POSIX shells and for Python.
 *
 * Recorded requests contain environment variables instead of secrets, and the shell expands only these. The command line
 * (`runs wire --curl`) uses the same quoting.
 */

const VARIABLE = /\$TRUNKLINE_SECRET[A-Z0-9_]*/g;
const UNSAFE = /[^A-Za-z0-9_@%+=:,./-]/;
const SPECIAL_IN_DOUBLE_QUOTES = /([\\"$`])/g;
// Shell arguments cannot contain NUL, and terminals should not receive the others.
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;

export function variablesIn(text: string): readonly string[] {
  return (text.match(VARIABLE) ?? []).map((found) => found.slice(1));
}

export function hasControl(text: string): boolean {
  return text.search(CONTROL) >= 0;
}

export function literal(text: string): string {
  if (text === "") return "''";
  return UNSAFE.test(text) ? `'${text.replaceAll("'", `'"'"'`)}'` : text;
}

/** A shell word in which only the variables of redacted secrets are expanded. */
export function word(text: string): string {
  if (variablesIn(text).length === 0) return literal(text);
  return `"${pieces(text)
    .map((piece) => (piece.isVariable ? `$${piece.text}` : escaped(piece.text)))
    .join("")}"`;
}

/** A command that writes the text to its standard output. */
export function printed(text: string): string {
  if (!hasControl(text)) return `printf %s ${literal(text)}`;
  const octal = (letter: string) => `\\0${letter.charCodeAt(0).toString(8).padStart(3, "0")}`;
  return `printf %b ${literal(text.replaceAll("\\", "\\\\").replace(CONTROL, octal))}`;
}

/** A Python expression; `filled` converts the value of a variable. */
export function pythonText(text: string, filled: (value: string) => string = (value) => value): string {
  // A JSON string is also a valid Python string.
  const parts = pieces(text).map((piece) =>
    piece.isVariable ? filled(`os.environ[${JSON.stringify(piece.text)}]`) : JSON.stringify(piece.text),
  );
  return parts.length === 0 ? '""' : parts.join(" + ");
}

function escaped(text: string): string {
  return text.replace(SPECIAL_IN_DOUBLE_QUOTES, "\\$1");
}

function pieces(text: string): readonly { readonly text: string; readonly isVariable: boolean }[] {
  const found: { text: string; isVariable: boolean }[] = [];
  let end = 0;
  for (const variable of text.matchAll(VARIABLE)) {
    if (variable.index > end) found.push({ text: text.slice(end, variable.index), isVariable: false });
    found.push({ text: variable[0].slice(1), isVariable: true });
    end = variable.index + variable[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end), isVariable: false });
  return found;
}
