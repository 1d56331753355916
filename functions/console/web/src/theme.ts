// The theme: the system's, until the person chooses one for this browser.

import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const listeners = new Set<() => void>();

const current = (): Theme => (document.documentElement.dataset.theme as Theme | undefined) ?? "system";

export function setTheme(theme: Theme) {
  try {
    if (theme === "system") localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme);
  } catch {
    // Then it lasts until the page is closed.
  }
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const listener of listeners) listener();
}

export const useTheme = () =>
  useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, current);
