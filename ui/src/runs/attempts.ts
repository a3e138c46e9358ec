/** The attempts of a step, as an address may name them. Pure. */

/** That the step has no such attempt, in words; null: it has. */
export function missingAttempt(
  step: { readonly name: string; readonly attempts: number },
  attempt: number,
): string | null {
  if (Number.isInteger(attempt) && attempt >= 1 && attempt <= step.attempts) return null;
  const had =
    step.attempts === 0
      ? "has not been called"
      : `has had ${step.attempts === 1 ? "one attempt" : `${step.attempts} attempts`}`;
  return `There is no attempt ${attempt}: ${step.name} ${had}.`;
}
