/** The state of the wire tab, which is kept in the URL. */

import { useMemo } from "react";

import { runRoute, type RunSearch } from "../app/router.tsx";
import type { Part } from "./attemptText.ts";
import { addressOf, openedIn, type Pair, pairIn } from "./search.ts";

export interface WireView {
  /** Null for the default. */
  readonly opened: ReadonlySet<string> | null;
  readonly onOpened: (opened: ReadonlySet<string> | null) => void;
  /** The compared attempts. */
  readonly pair: Pair | null;
  readonly part: Part;
  readonly onCompare: (pair: Pair, part: Part) => void;
  readonly onCompared: () => void;
}

export function useWireView(): WireView {
  const { exchange, compare, part = "response" } = runRoute.useSearch();
  const navigate = runRoute.useNavigate();
  const opened = useMemo(() => openedIn(exchange), [exchange]);
  const pair = useMemo(() => pairIn(compare), [compare]);
  return {
    opened,
    onOpened(next) {
      const search = ({ exchange: _, ...rest }: RunSearch) =>
        next === null ? rest : { ...rest, exchange: addressOf(next) };
      void navigate({ search, replace: true, resetScroll: false });
    },
    pair,
    part,
    onCompare({ before, after }, what) {
      const search = ({ part: _, ...rest }: RunSearch) => ({
        ...rest,
        compare: `${before},${after}`,
        ...(what === "response" ? {} : { part: what }),
      });
      // The back button closes the comparison, whatever was selected in it.
      void navigate({ search, replace: pair !== null, resetScroll: false });
    },
    onCompared() {
      void navigate({ search: ({ compare: _, part: __, ...rest }: RunSearch) => rest, resetScroll: false });
    },
  };
}
