// Elements, made of plain data. Text is text: nothing that a program is called is ever read as HTML.

// element("td", { class: "number", onclick: go }, "12", other): attributes, listeners (on…) and children.
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// The same of SVG.
export function drawn(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-") && value !== null && value !== undefined) made.setAttribute(name, String(value));
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : String(child)));
  return made;
}

// A table. columns: [{ title, class }]; rows: [{ key, cells, attributes }]. The row that has the focus keeps it when the
// table is made anew.
export function table(caption, columns, rows, none) {
  const body = element("tbody");
  for (const row of rows)
    body.append(element("tr", { "data-key": row.key, ...row.attributes },
                        ...row.cells.map((cell, i) => element("td", { class: columns[i].class, "data-title": columns[i].title },
                                                              ...[cell].flat()))));
  if (rows.length === 0) body.append(element("tr", {}, element("td", { class: "none", colspan: columns.length }, none)));
  return element("table", {},
                 element("caption", { class: "hidden" }, caption),
                 element("thead", {}, element("tr", {}, ...columns.map((column) =>
                   element("th", { scope: "col", class: column.class }, column.title)))),
                 body);
}

// Puts `made` in place of what is there, and the focus back on the element with the same data-focus.
export function show(place, made) {
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  place.replaceChildren(...[made].flat());
  if (focused) place.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}

export const number = (value, digits = 0) => value.toLocaleString(undefined, { maximumFractionDigits: digits });

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return `${number(value, value < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

export function duration(ms) {
  if (ms < 1000) return `${number(ms, ms < 10 ? 1 : 0)} ms`;
  if (ms < 60000) return `${number(ms / 1000, 1)} s`;
  return `${number(ms / 60000)} min`;
}
