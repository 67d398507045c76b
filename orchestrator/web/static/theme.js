// Light or dark: as the reader's system has it until the reader says otherwise, kept for this browser.

const KEY = "mrcfabric.theme";

/** Set the theme and follow the system; returns {toggle}. `changed()` is told whenever the colours are others. */
export function theme(changed) {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const own = () => localStorage.getItem(KEY);
  const set = () => {
    document.documentElement.dataset.theme = own() ?? (system.matches ? "dark" : "light");
    changed();
  };
  system.addEventListener("change", set);
  set();
  return {
    toggle() {
      localStorage.setItem(KEY, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
      set();
    },
  };
}
