// The colours of the page, known before it is first painted: as the reader has chosen, else as the system has them.
(() => {
  const chosen = localStorage.getItem("mantine-color-scheme-value");
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const scheme = chosen === "light" || chosen === "dark" ? chosen : dark ? "dark" : "light";
  document.documentElement.setAttribute("data-mantine-color-scheme", scheme);
})();
