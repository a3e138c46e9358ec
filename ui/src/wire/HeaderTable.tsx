/** The headers of a request or a response. Secrets were redacted before recording. */

import { Text } from "@mantine/core";

import classes from "./wire.module.css";

export function HeaderTable({ headers, label }: { headers: Readonly<Record<string, string>>; label: string }) {
  const entries = Object.entries(headers);
  if (entries.length === 0)
    return (
      <Text size="sm" c="dimmed">
        No headers.
      </Text>
    );
  return (
    <table className={classes["headers"]} aria-label={label} data-testid="headers">
      <tbody>
        {entries.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
