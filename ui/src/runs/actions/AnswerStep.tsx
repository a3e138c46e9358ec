/** What a step of the run asks, to be answered without leaving the run. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Loading } from "../../app/Loading.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { Gone, isOver, Question } from "../../inbox/Question.tsx";
import { itemQuery } from "../../inbox/waiting.ts";

export default function AnswerStep({ run, step, onDone }: { run: string; step: string; onDone: () => void }) {
  const present = useQuery({ ...itemQuery(`${run}.${step}`), refetchOnMount: "always" });
  // The one that is asked now, not one of an earlier look; from then on it stays, whatever the step asks next.
  const [chosen, choose] = useState<string | null>(null);
  if (chosen !== null) return <Question key={chosen} id={chosen} where="run" onDone={onDone} onChoose={choose} />;
  if (!present.isFetchedAfterMount) return <Loading lines={4} />;
  if (isOver(present.error)) return <Gone run={run} where="run" />;
  if (present.isSuccess) choose(present.data.id);
  return present.error === null ? null : <ProblemPanel error={present.error} again={() => void present.refetch()} />;
}
