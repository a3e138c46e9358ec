/** The fields of a form with invalid JSON. While there is one, the form cannot be sent. */

import { useCallback, useState } from "react";

export interface InvalidFields {
  readonly isBroken: boolean;
  readonly onBroken: (place: string, broken: boolean) => void;
  readonly mend: () => void;
}

const NONE: ReadonlySet<string> = new Set();

export function useInvalidFields(): InvalidFields {
  const [places, setPlaces] = useState(NONE);
  const onBroken = useCallback((place: string, broken: boolean) => {
    setPlaces((before) => {
      if (before.has(place) === broken) return before;
      return new Set(broken ? [...before, place] : [...before].filter((other) => other !== place));
    });
  }, []);
  const mend = useCallback(() => setPlaces(NONE), []);
  return { isBroken: places.size > 0, onBroken, mend };
}
