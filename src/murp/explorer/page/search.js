// The search box: completion as you type, by the ARIA combobox pattern.

import { $, announce, element } from "./dom.js";

export function startSearch(source, choose) {
  const input = $("search");
  const list = $("completions");
  let results = [];
  let active = -1;
  let asked = 0;
  let waiting = 0;

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const take = (i) => {
    input.value = results[i].name;
    close();
    choose(results[i].id);
  };

  const mark = (i) => {
    active = (i + results.length) % results.length;
    [...list.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === active)));
    input.setAttribute("aria-activedescendant", `completion-${active}`);
    list.children[active].scrollIntoView({ block: "nearest" });
  };

  const show = () => {
    list.replaceChildren(
      ...results.map((result, i) =>
        element(
          "li",
          { id: `completion-${i}`, role: "option", "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); take(i); } },
          element("strong", {}, result.name),
          element("code", {}, result.id === result.name ? "" : result.id),
          element("small", {}, result.gloss ?? ""),
        ),
      ),
    );
    list.hidden = results.length === 0;
    input.setAttribute("aria-expanded", String(results.length > 0));
    announce(results.length ? `${results.length} matches` : "no match");
  };

  const ask = async () => {
    const mine = (asked += 1);
    try {
      const found = await source.search(input.value, 12);
      if (mine !== asked) return; // a later question has been asked meanwhile
      results = found;
      show();
    } catch (error) {
      announce(error.message);
    }
  };

  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, 60);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) ask();
      else mark(event.key === "ArrowDown" ? active + 1 : Math.max(active, 0) - 1);
    } else if (event.key === "Enter" && results.length && !list.hidden) {
      event.preventDefault();
      take(Math.max(active, 0));
    } else if (event.key === "Escape") {
      close();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !["INPUT", "SELECT"].includes(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    }
  });
}
