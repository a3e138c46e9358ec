/** A text as a YAML scalar: in quotes where it would mean something else without them. */
export function scalar(text: string): string {
  return /^[A-Za-z_][\w .-]*$/.test(text) && !/^(true|false|null)$/i.test(text) ? text : JSON.stringify(text);
}
