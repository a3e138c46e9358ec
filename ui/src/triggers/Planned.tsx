/** Times in the future: absolute in the text, because they are looked up and compared. */

import { absoluteTime, useTimeZone } from "../app/Timestamp.tsx";
import classes from "./triggers.module.css";

export function Planned({ at }: { at: string }) {
  const [zone] = useTimeZone();
  return (
    <time dateTime={at} className={classes["when"]}>
      {absoluteTime(Date.parse(at), zone)}
    </time>
  );
}

export function PlannedList({ times }: { times: readonly string[] }) {
  return (
    <ol className={classes["times"]} data-testid="next-firings">
      {times.map((at) => (
        <li key={at}>
          <Planned at={at} />
        </li>
      ))}
    </ol>
  );
}
