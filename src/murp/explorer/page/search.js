// The search box: completion as you type, by the ARIA combobox pattern.

import { $, announce, element } from "./dom.js";

const RELATIONS = 3; // among the completions

// choose(id); relate(id): a relation; fail(error)
export function startSearch(source, relations, choose, relate, fail) {
  const input = $("search");
  const list = $("completions");
  let results = [];
  let answered = ""; // the text that `results` belong to
  let active = -1;
  let asked = 0;
  let waiting = 0;

  // Nothing on its way may open the list again.
  const close = () => {
    clearTimeout(waiting);
    asked += 1;
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const take = (i) => {
    input.value = answered = results[i].name;
    close();
    (results[i].isRelation ? relate : choose)(results[i].id);
  };

  const mark = (i) => {
    if (!results.length) return;
    active = (i + results.length) % results.length;
    [...list.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === active)));
    input.setAttribute("aria-activedescendant", `completion-${active}`);
    list.children[active].scrollIntoView({ block: "nearest" });
  };

  const completion = (result, i) =>
    element(
      "li",
      { id: `completion-${i}`, role: "option", "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); take(i); } },
      element("strong", {}, result.name),
      element("code", {}, result.id === result.name ? "" : result.id),
      element("small", {}, result.isRelation ? "relation" : result.gloss ?? ""),
    );

  const show = () => {
    const none = `no entity contains “${answered.trim()}”`;
    active = -1;
    input.removeAttribute("aria-activedescendant");
    list.replaceChildren(...(results.length ? results.map(completion) : [element("li", { role: "option", "aria-disabled": "true" }, none)]));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    announce(results.length ? `${results.length} matches` : none);
  };

  // Whether what is typed now has been answered: not where it fails, or where another text was typed or chosen meanwhile.
  const ask = async () => {
    clearTimeout(waiting);
    const mine = (asked += 1);
    const text = input.value;
    try {
      const found = await source.search(text, 12);
      if (mine !== asked) return false;
      const typed = text.trim().toLowerCase();
      const named = typed ? relations.filter(({ name }) => name.toLowerCase().includes(typed)).slice(0, RELATIONS) : [];
      [results, answered] = [[...found, ...named.map((one) => ({ ...one, isRelation: true }))], text];
      show();
      return true;
    } catch (error) {
      if (mine === asked) fail(error);
      return false;
    }
  };

  const enter = async () => {
    const isOpen = !list.hidden && input.value === answered;
    const isNew = input.value.trim() && input.value !== answered;
    if ((isOpen || (isNew && (await ask()))) && results.length) take(Math.max(active, 0));
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
    } else if (event.key === "Enter") {
      event.preventDefault();
      enter();
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
