/** The number of inbox items, in the header of every page. */

import { Inbox } from "lucide-react";

import { ButtonLink } from "../app/links.tsx";
import { useTitleCount } from "../app/title.ts";
import { useInboxRefresh } from "./useInboxRefresh.ts";
import { MOST_COUNTED, useInboxItemCount } from "./queries.ts";

export function InboxCount() {
  const { data: count } = useInboxItemCount();
  useInboxRefresh();
  const shown = count === undefined || count === 0 ? null : count > MOST_COUNTED ? `${MOST_COUNTED}+` : String(count);
  useTitleCount(shown);
  if (shown === null) return null;
  return (
    <ButtonLink
      to="/inbox"
      search={{}}
      size="compact-sm"
      variant="light"
      color="orange"
      leftSection={<Inbox size={15} aria-hidden />}
      aria-label={`Inbox: ${shown} waiting ${count === 1 ? "step" : "steps"}`}
      data-testid="inbox-count"
    >
      {shown}
    </ButtonLink>
  );
}
