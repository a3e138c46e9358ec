/** A text as a YAML scalar, quoted if needed. */
export function scalar(text: string): string {
  return /^[A-Za-z_][\w .-]*$/.test(text) && !/^(true|false|null)$/i.test(text) ? text : JSON.stringify(text);
}
