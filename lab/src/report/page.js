// The page can be read without this: it only changes colours, hides systems and sorts tables when asked to.
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  prefersDark.addEventListener("change", name);
  name();

  for (const scenario of document.querySelectorAll(".scenario")) {
    const buttons = [...scenario.querySelectorAll(".legend button")];
    for (const button of buttons) {
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const own = button.dataset.system;
        const shown = button.getAttribute("aria-pressed") !== "true";
        for (const same of buttons.filter((other) => other.dataset.system === own)) {
          same.setAttribute("aria-pressed", String(shown));
        }
        for (const drawn of scenario.querySelectorAll(`.plot .${own}`)) drawn.classList.toggle("off", !shown);
      });
    }
  }

  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const measured = [...body.rows];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        // Up, down, then as it was measured.
        const next = { ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")] ?? "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        const sign = next === "descending" ? -1 : 1;
        const value = (row) => {
          const cell = row.cells[column];
          if (!head.classList.contains("figure")) return cell.textContent;
          return cell.dataset.value === undefined ? NaN : Number(cell.dataset.value);
        };
        const compare = (one, other) => {
          const [a, b] = [value(one), value(other)];
          if (typeof a === "string") return sign * a.localeCompare(b, "en", { numeric: true });
          if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
          return sign * (a - b);
        };
        if (next !== "none") head.setAttribute("aria-sort", next);
        body.append(...(next === "none" ? measured : [...measured].sort(compare)));
      });
    });
  }
})();
