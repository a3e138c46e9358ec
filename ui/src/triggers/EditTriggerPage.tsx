/** Edits a trigger. */

import { useQuery } from "@tanstack/react-query";

import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { editTriggerRoute } from "../app/router.tsx";
import { usePageTitle } from "../app/title.ts";
import { triggerQuery } from "./queries.ts";
import { TriggerEditor } from "./TriggerEditor.tsx";

export function EditTriggerPage() {
  const { trigger } = editTriggerRoute.useParams();
  usePageTitle(`Edit ${trigger}`);
  // What others save meanwhile does not change the text here.
  const query = useQuery({ ...triggerQuery(trigger), refetchInterval: false, refetchOnWindowFocus: false });
  if (query.error !== null) return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return <Loading />;
  return <TriggerEditor key={trigger} heading={`Edit ${trigger}`} trigger={trigger} initial={query.data.yaml} />;
}
