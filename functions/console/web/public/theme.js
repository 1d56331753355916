// Before anything is drawn: the theme that this browser keeps, if the person chose one.
(() => {
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // A browser may forbid storage; then the theme is the system's.
  }
})();
