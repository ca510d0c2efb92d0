// How close the rows of tables stand: as usual, or compact. The choice is kept in this browser.

const DENSITY = "agentsvc-density";

export const isCompact = () => localStorage.getItem(DENSITY) === "compact";

export const densityName = () => (isCompact() ? "compact" : "comfortable");

export function applyDensity() {
  if (isCompact()) document.documentElement.dataset.density = "compact";
  else delete document.documentElement.dataset.density;
}

export function nextDensity() {
  if (isCompact()) localStorage.removeItem(DENSITY);
  else localStorage.setItem(DENSITY, "compact");
  applyDensity();
}
