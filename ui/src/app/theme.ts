/** Colours and sizes. Each status has a colour, an icon and a label (`StatusBadge`), never a colour alone. */

import { createTheme, type CSSVariablesResolver, Modal, SegmentedControl } from "@mantine/core";

export const theme = createTheme({
  primaryColor: "indigo",
  // White text on it has a contrast of at least 4.5 : 1, and it has 3 : 1 on either background.
  primaryShade: 7,
  autoContrast: true,
  respectReducedMotion: true,
  defaultRadius: "sm",
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace',
  components: {
    SegmentedControl: SegmentedControl.extend({ defaultProps: { transitionDuration: 0 } }),
    Modal: Modal.extend({
      defaultProps: { closeButtonProps: { "aria-label": "Close" }, transitionProps: { duration: 0 } },
      styles: { title: { fontWeight: 700 } },
    }),
  },
});

/** A contrast of at least 4.5 : 1 on every background; Mantine's defaults are lighter. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#5a6270",
    "--mantine-color-placeholder": "#5f6774",
    "--mantine-color-anchor": "#2f4fc7",
    "--mantine-color-error": "#b3161b",
    "--mantine-color-orange-light-color": "#8a3a00",
    "--mantine-color-yellow-light-color": "#744200",
  },
  dark: {
    "--mantine-color-dimmed": "#a3aab5",
    "--mantine-color-placeholder": "#a3aab5",
    "--mantine-color-anchor": "#91a7ff",
    "--mantine-color-error": "#ff8787",
  },
});
