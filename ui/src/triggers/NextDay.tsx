/** What the schedules fire in the next 24 hours, hour by hour. Hours without firings are left out. */

import { Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { AnchorLink } from "../app/links.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { useTimeZone } from "../app/Timestamp.tsx";
import { type UpcomingTrigger, upcomingQuery } from "./queries.ts";
import classes from "./triggers.module.css";

const HOUR_MS = 3_600_000;

type Zone = "local" | "utc";

export function NextDay() {
  const query = useQuery(upcomingQuery);
  const [zone] = useTimeZone();
  const hours = byHour(query.data?.items ?? [], zone);
  const cut = query.data?.items.filter((each) => each.has_more).map((each) => each.trigger) ?? [];
  return (
    <Stack gap="xs" component="section" aria-labelledby="next-day">
      <Title order={2} size="h4" id="next-day">
        Next 24 hours
      </Title>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isSuccess && hours.length === 0 && (
        <Text size="sm" c="dimmed" data-testid="nothing-planned">
          No schedule fires in the next 24 hours.
        </Text>
      )}
      <ol className={classes["day"]} data-testid="next-day">
        {hours.map(([hour, planned]) => (
          <li key={hour} className={classes["hour"]} data-testid="planned-hour">
            <Text size="sm" fw={600}>
              {hourText(hour, zone)}
            </Text>
            <div className={classes["planned"]}>
              {planned.map(({ trigger, times }) => (
                <Text key={trigger} size="sm" component="span">
                  <AnchorLink to="/triggers/$trigger" params={{ trigger }} size="sm">
                    {trigger}
                  </AnchorLink>{" "}
                  {times.length > MOST_TIMES ? `${times.length} times` : times.join(", ")}
                </Text>
              ))}
            </div>
          </li>
        ))}
      </ol>
      {cut.length > 0 && (
        <Text size="sm" c="dimmed">
          Only the first 100 firings are shown of: {cut.join(", ")}.
        </Text>
      )}
      {query.data?.is_complete === false && (
        <Text size="sm" c="dimmed">
          Only the first 500 triggers are shown.
        </Text>
      )}
    </Stack>
  );
}

// More are shown as a number.
const MOST_TIMES = 4;

interface PlannedHour {
  readonly trigger: string;
  readonly times: readonly string[];
}

function byHour(upcoming: readonly UpcomingTrigger[], zone: Zone): [number, PlannedHour[]][] {
  const hours = new Map<number, Map<string, string[]>>();
  for (const { trigger, firings } of upcoming) {
    for (const at of firings) {
      const instant = Date.parse(at);
      const hour = Math.floor(instant / HOUR_MS) * HOUR_MS;
      const planned = hours.get(hour) ?? new Map<string, string[]>();
      hours.set(hour, planned);
      planned.set(trigger, [...(planned.get(trigger) ?? []), clockText(instant, zone)]);
    }
  }
  return [...hours]
    .sort(([one], [other]) => one - other)
    .map(([hour, planned]) => [hour, [...planned].map(([trigger, times]) => ({ trigger, times }))]);
}

function hourText(hour: number, zone: Zone): string {
  return clockText(hour, zone, { weekday: "short" });
}

function clockText(instant: number, zone: Zone, day: Intl.DateTimeFormatOptions = {}): string {
  return new Date(instant).toLocaleString(undefined, {
    ...day,
    hour: "2-digit",
    minute: "2-digit",
    ...(zone === "utc" ? { timeZone: "UTC" } : {}),
  });
}
