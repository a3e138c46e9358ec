/** Validates the attempt number of a URL. Pure. */

/** A message that the attempt does not exist, or null if it does. */
export function missingAttempt(
  step: { readonly name: string; readonly attempts: number },
  attempt: number,
): string | null {
  if (Number.isInteger(attempt) && attempt >= 1 && attempt <= step.attempts) return null;
  const had =
    step.attempts === 0
      ? "has not been called"
      : `has ${step.attempts === 1 ? "one attempt" : `${step.attempts} attempts`}`;
  return `There is no attempt ${attempt}: ${step.name} ${had}.`;
}
