/** What a step of the run asks, to be answered without leaving the run. */

import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { Problem } from "../../api/problem.ts";
import { Loading } from "../../app/Loading.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { Answer } from "../../inbox/Answer.tsx";
import { itemQuery } from "../../inbox/waiting.ts";

export default function AnswerStep({ run, step, onDone }: { run: string; step: string; onDone: () => void }) {
  const query = useQuery(itemQuery(`${run}.${step}`));
  if (query.error instanceof Problem && query.error.status === 404) {
    return <Text role="status">The step waits no more: it was answered meanwhile, or its run has ended.</Text>;
  }
  if (query.error !== null && query.data === undefined) {
    return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  }
  if (query.data === undefined) return <Loading lines={4} />;
  return <Answer item={query.data} onDone={onDone} />;
}
