// Sorts a table by the column whose heading is clicked. Pages can be read without it.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.tHead.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.tHead.querySelectorAll("th").forEach((th) => th.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column]?.dataset.sort ?? row.cells[column]?.textContent ?? "";
      const order = new Intl.Collator(undefined, { numeric: true }).compare;
      const rows = [...body.rows].sort((a, b) => order(key(a), key(b)));
      body.append(...(up ? rows : rows.reverse()));
    });
  });
}
// Filters the items of a page of questions.
const form = document.querySelector("form.filters");
if (form) {
  const articles = [...document.querySelectorAll("article")];
  const tally = JSON.parse(document.getElementById("main").dataset.tally);
  const sum = (rows) => rows.reduce((total, row) => total + row.count, 0);
  const filter = () => {
    const given = Object.fromEntries(new FormData(form));
    // Verdicts are numbers, as in "1.2 3.1": of the first model the second verdict.
    const number = (name) => form.elements[name].selectedIndex || "\\d+";
    const pair = (end) => new RegExp(`\\b${number("model" + end)}\\.${number("verdict" + end)}\\b`);
    const pairs = ["", "2"].filter((end) => given["model" + end] || given["verdict" + end]).map(pair);
    const fits = ({ category, differs, verdicts }) =>
      (!given.category || category === given.category) &&
      (!given.disputed || differs) &&
      pairs.every((one) => one.test(verdicts));
    let count = 0;
    for (const article of articles) {
      const { dataset, textContent } = article;
      const shown =
        fits({ ...dataset, category: article.parentElement.id }) &&
        textContent.toLowerCase().includes(given.text.toLowerCase());
      article.hidden = !shown;
      count += shown;
    }
    for (const section of document.querySelectorAll("main.items section")) {
      section.hidden = !section.querySelector("article:not([hidden])");
    }
    document.querySelector("main.items").classList.toggle("filtered", count < articles.length);
    const all = sum(tally.filter(fits)).toLocaleString("en");
    const counts = [`${count} of the ${articles.length} shown`];
    if (!given.text) counts.push(`${all} of ${sum(tally).toLocaleString("en")} asked`);
    form.querySelector("output").textContent = counts.join("; ");
  };
  // The address ends in what was chosen, #category=gender&verdict=stereotyped, for links to it.
  const choose = () => {
    filter();
    const given = [...new FormData(form)].filter(([, value]) => value);
    history.replaceState(null, "", `#${new URLSearchParams(given)}`);
  };
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const field = form.elements[name];
    if (field) field[field.type === "checkbox" ? "checked" : "value"] = value;
  }
  form.hidden = false;
  form.addEventListener("input", choose);
  form.addEventListener("reset", () => setTimeout(choose));
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
