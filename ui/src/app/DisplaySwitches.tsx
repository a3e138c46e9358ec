/** The switches for the theme and the time zone. */

import { ActionIcon, Tooltip, UnstyledButton, useMantineColorScheme } from "@mantine/core";
import { Moon, Sun, SunMoon } from "lucide-react";

import { useTimeZone } from "./Timestamp.tsx";
import classes from "./Shell.module.css";

const NEXT = { auto: "light", light: "dark", dark: "auto" } as const;
const SCHEMES = {
  auto: { icon: SunMoon, name: "system" },
  light: { icon: Sun, name: "light" },
  dark: { icon: Moon, name: "dark" },
};

export function SchemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { icon: Icon, name } = SCHEMES[colorScheme];
  const next = NEXT[colorScheme];
  return (
    <Tooltip label={`Theme: ${name}`} openDelay={300}>
      <ActionIcon
        variant="default"
        size="lg"
        aria-label={`Theme: ${name}. Switch to ${SCHEMES[next].name}`}
        onClick={() => setColorScheme(next)}
        data-testid="scheme"
        data-scheme={colorScheme}
      >
        <Icon size={18} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}

export function TimesSwitch() {
  const [zone, setZone] = useTimeZone();
  const shown = zone === "utc" ? "UTC" : "Local";
  return (
    <Tooltip label={zone === "utc" ? "Times are shown in UTC" : "Times are shown in your time zone"} openDelay={300}>
      <UnstyledButton
        className={classes["times"]}
        aria-label={zone === "utc" ? "Times in UTC. Switch to local time" : "Times in local time. Switch to UTC"}
        onClick={() => setZone(zone === "utc" ? "local" : "utc")}
        data-testid="times"
      >
        {shown}
      </UnstyledButton>
    </Tooltip>
  );
}
