/** What starts a trigger, in words. */

import type { ListedTrigger, Trigger } from "./queries.ts";

export function sourceText({ schedule, webhook, event, run }: ListedTrigger | Trigger): string {
  if (schedule !== undefined) {
    if (schedule.cron !== undefined) return `${schedule.cron} (${schedule.timezone})`;
    if (schedule.every !== undefined) return `Every ${schedule.every}`;
    const times = schedule.at?.length ?? 0;
    return times === 1 ? "Once" : `At ${times.toLocaleString()} times`;
  }
  if (webhook !== undefined)
    return `Webhook (${webhook.verify.scheme === "none" ? "not verified" : webhook.verify.scheme})`;
  if (event !== undefined) return `Event ${event.type.join(", ")}`;
  if (run !== undefined) return `Run of ${run.workflow}: ${run.status.join(", ").toLowerCase()}`;
  return "–";
}

/** The limits of the trigger's runs, in words. */
export function flowTexts({ concurrency, throttle, debounce, priority }: Trigger): string[] {
  const key = concurrency?.key ?? debounce?.key;
  return [
    ...(concurrency === undefined
      ? []
      : [`Up to ${concurrency.limit.toLocaleString()} at the same time (${concurrency.on_limit})`]),
    ...(throttle === undefined ? [] : [`Up to ${throttle}`]),
    ...(debounce === undefined ? [] : [`Debounce: ${debounce.wait}`]),
    ...(priority === undefined ? [] : [`Priority ${priority}`]),
    ...(key === undefined ? [] : [`By ${key}`]),
  ];
}
