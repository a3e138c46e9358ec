/** Formats counts and lists of names. */

export function counted(number: number, what: string): string {
  return `${number.toLocaleString()} ${what}${number === 1 ? "" : "s"}`;
}

/** The first names, and a count of the rest. */
export function named(names: readonly string[], most: number): string {
  const rest = names.length - most;
  if (rest > 0) return `${names.slice(0, most).join(", ")} and ${rest} more`;
  return new Intl.ListFormat("en", { type: "conjunction" }).format(names);
}
