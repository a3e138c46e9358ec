/** The document's title: by the address, unless a page knows better. */

import { useEffect, useLayoutEffect } from "react";

import { placeOf } from "./places.ts";

const BRAND = "Trunkline";

export function titleOf(path: string): string {
  const place = placeOf(path);
  if (place === undefined) return BRAND;
  if (path === place.makes) return `New · ${place.name} · ${BRAND}`;
  const rest = path.slice(place.to.length).split("/").filter((part) => part !== "").map(decoded);
  return [...rest, place.name, BRAND].join(" · ");
}

/** For the shell: what the address says. Set before the effects of pages, so that theirs stay. */
export function useAddressTitle(path: string): void {
  useLayoutEffect(() => {
    document.title = titleOf(path);
  }, [path]);
}

/** For a page that can say more than its address: `Completed · review`. */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · ${BRAND}`;
  }, [title]);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
