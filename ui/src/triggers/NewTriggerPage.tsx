/** Creates a trigger, starting from a schedule. */

import { usePageTitle } from "../app/title.ts";
import { TriggerEditor } from "./TriggerEditor.tsx";

const TEMPLATE = `kind: trigger
name: my-trigger
workflow: my-workflow
input:
  day: \${ trigger.scheduled_at }
schedule:
  cron: 0 9 * * MON-FRI
  timezone: Europe/Berlin
`;

export function NewTriggerPage() {
  usePageTitle("New trigger");
  return <TriggerEditor heading="New trigger" trigger={null} initial={TEMPLATE} />;
}
