/** What to do about a failure. Pure. */

import { literal } from "../wire/quoting.ts";
import { childRunIn } from "./ChildLink.tsx";

export interface Mendable {
  readonly code: string;
  readonly message: string;
  readonly fix: string;
  readonly step?: string | null | undefined;
}

/** The fix with its commands as they are to be typed: for this run, or for the one that has failed it. */
export function fixFor(failure: Mendable, run: string): string {
  const which = childRunIn(failure) ?? run;
  const { fix, step } = failure;
  const named = step === null || step === undefined ? fix : fix.replaceAll(" RUN STEP", ` ${which} ${literal(step)}`);
  return named.replaceAll(" RUN", ` ${which}`);
}
