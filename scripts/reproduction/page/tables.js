// Tables sort by the column whose header is clicked; once more, the other way round.
"use strict";

for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      const ascending = header.getAttribute("aria-sort") !== "ascending";
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => compare(a.cells[column], b.cells[column], ascending));
      table.tBodies[0].append(...rows);
    });
  });
}

// Numbers before words; cells with nothing to sort by come last, whatever the direction.
function compare(a, b, ascending) {
  const [x, y] = [a.dataset.value ?? a.textContent, b.dataset.value ?? b.textContent];
  if (x === "" || y === "") return (x === "") - (y === "");
  const [p, q] = [Number(x), Number(y)];
  const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
  return ascending ? order : -order;
}
