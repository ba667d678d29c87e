// On a phone each cell of a table is a line of its own: it begins with the name of its column.
for (const table of document.querySelectorAll(".md-typeset table:not([class])")) {
  const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent);
  for (const row of table.querySelectorAll("tbody tr"))
    [...row.cells].forEach((cell, column) => column && names[column] && (cell.dataset.column = names[column]));
}
// A word of code is not broken at its hyphens, unless it is longer than a phone is wide.
for (const code of document.querySelectorAll(".md-typeset :not(pre) > code"))
  if (!code.firstElementChild)
    code.innerHTML = code.innerHTML.replace(/(?<!\S)\S{1,34}(?!\S)/g, '<span style="white-space: nowrap">$&</span>');
