/** The `trunkline` command that starts a run. */

export function runCommand(
  workflow: string,
  version: number | null,
  input: unknown,
  priority: number | null = null,
): string {
  const words = ["trunkline", "run", quoted(workflow)];
  if (version !== null) words.push("--version", String(version));
  if (priority !== null) words.push("--priority", String(priority));
  words.push("--follow", "--input-file", "-");
  return `${words.join(" ")} <<'INPUT'\n${JSON.stringify(input, null, 2)}\nINPUT`;
}

function quoted(word: string): string {
  return /^[A-Za-z0-9_./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
