// Elements from plain values. Text is only ever set as text, so a name cannot become markup.

export const $ = (id) => document.getElementById(id);

// element("td", { class: "name" }, "asia", otherElement …); on… attributes are listeners.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function table(caption, headings, rows) {
  return element(
    "table", {},
    element("caption", { class: "unseen" }, caption),
    element("thead", {}, element("tr", {}, ...headings.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...rows),
  );
}

// A metric as the literature prints it.
export const figure = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));

export const count = (value) => value.toLocaleString("en");

// "1 fact", "2 facts"
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function announce(text) {
  $("status").textContent = text;
}
