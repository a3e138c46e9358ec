/** Replies to a waiting step without leaving the run page. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Loading } from "../../app/Loading.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { ClosedItem, isOver, InboxItemDetail } from "../../inbox/InboxItemDetail.tsx";
import { itemQuery } from "../../inbox/queries.ts";

export default function ReplyToStep({ run, step, onDone }: { run: string; step: string; onDone: () => void }) {
  const present = useQuery({ ...itemQuery(`${run}.${step}`), refetchOnMount: "always" });
  // Loads the current question once; the dialog keeps it even if the step asks another one.
  const [chosen, choose] = useState<string | null>(null);
  if (chosen !== null)
    return <InboxItemDetail key={chosen} id={chosen} where="run" onDone={onDone} onChoose={choose} />;
  if (!present.isFetchedAfterMount) return <Loading lines={4} />;
  if (isOver(present.error)) return <ClosedItem run={run} where="run" />;
  if (present.isSuccess) choose(present.data.id);
  return present.error === null ? null : <ProblemPanel error={present.error} again={() => void present.refetch()} />;
}
