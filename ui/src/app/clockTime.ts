/** Formats a time of day with milliseconds, local or in UTC. */

export function clockTime(at: number, zone: "local" | "utc"): string {
  const moment = new Date(at);
  if (zone === "utc") return moment.toISOString().slice(11, 23);
  const two = (number: number, digits = 2) => String(number).padStart(digits, "0");
  return `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}.${two(moment.getMilliseconds(), 3)}`;
}
