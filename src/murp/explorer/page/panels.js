// The tables beside the picture: everything it shows, for those who read rather than look.

import { $, count, element, figure, table } from "./dom.js";
import { repeated } from "./names.js";

// For each of a list a button with its name, and with its id where another has the same name.
export function named(items, choose) {
  const several = repeated(items.map(({ name }) => name));
  return items.map(({ id, name }) =>
    element("button", { type: "button", class: "name", title: id, onclick: () => choose(id) },
      name, several.has(name) ? element("code", {}, ` ${id}`) : ""));
}

export const unseen = (text) => element("span", { class: "unseen" }, text);

const OWN = "σ(φ), the model's own: it ranks answers, but nothing makes it the share of them that is true before `murp calibrate`.";
const CALIBRATED = "Calibrated on the validation facts: the share of such answers that is true, for questions with an answer still to be found, counting as true only what held-out facts state.";

// What the probabilities of an answer are worth.
function probabilityHeading(calibrated) {
  const [word, meaning] = calibrated ? ["calibrated", CALIBRATED] : ["model's own", OWN];
  return element("span", { title: meaning }, "prob. ", element("small", {}, word));
}

// Below an answer the known facts that lie nearest to it, or nothing again.
async function explain(button, prediction, run, hooks) {
  const row = button.closest("tr");
  if (row.nextElementSibling?.classList.contains("because")) {
    row.nextElementSibling.remove();
    button.setAttribute("aria-expanded", "false");
    return;
  }
  const { facts, relation } = await hooks.why(prediction.id, run);
  const told = facts.map(({ head, tail, distance }) => element("li", {}, `${head.name} ${relation.name} ${tail.name} `, element("small", {}, figure(distance, 2))));
  row.after(element("tr", { class: "because" }, element("td", {}), element("td", { colspan: 4 },
    element("p", { class: "note" }, facts.length ? `Training states, nearest first (distance of both ends):` : "Training states no other fact of this relation."),
    element("ul", {}, ...told))));
  button.setAttribute("aria-expanded", "true");
}

// The ranked answers of every run to one question.
export function showAnswers(runs, answers, hooks) {
  const { head, relation, tail } = answers[0].query;
  const asked = `(${head?.name ?? "?"}, ${relation.name}, ${tail?.name ?? "?"})`;
  // Calibrated beside calibrated: where one run is not, both show the model's own.
  const calibrated = answers.every(({ predictions }) => predictions.some((p) => p.calibrated !== undefined));
  const row = (p, button, run) => {
    const probability = calibrated ? p.calibrated : p.probability;
    const on = () => hooks.mark(p.id);
    const off = () => hooks.mark(null);
    return element(
      "tr", { onpointerenter: on, onpointerleave: off, onfocusin: on, onfocusout: off },
      element("td", { class: "rank" }, String(p.rank)),
      element("td", {}, button),
      element("td", { class: "probability" }, element("meter", { min: 0, max: 1, value: probability, "aria-hidden": "true" }), figure(probability)),
      element("td", {}, p.known ? element("span", { class: "known", title: `in ${p.known}` }, p.known) : element("span", { class: "new" }, "new")),
      element("td", {}, element("button", { type: "button", class: "why", "aria-expanded": "false", onclick: (event) => explain(event.target, p, run, hooks) }, "why", element("span", { class: "unseen" }, ` ${p.name}`))),
    );
  };
  const tables = answers.map(({ predictions }, i) => {
    const buttons = named(predictions, hooks.choose);
    return element(
      "div", {},
      runs.length > 1 ? element("h3", {}, runs[i].title) : "",
      table(
        `Most probable answers to ${asked}, ${runs[i].title}`,
        [unseen("rank"), "answer", probabilityHeading(calibrated), unseen("known or new"), unseen("why")],
        predictions.map((p, n) => row(p, buttons[n], i + 1)),
      ),
    );
  });
  $("answers").replaceChildren(
    element("h2", {}, "Answers to ", element("span", { class: "asked" }, asked)),
    element("div", { class: tables.length > 1 ? "pair" : "" }, ...tables),
  );
}

// near: [{entities, isTrue}] a run
export function showNear(runs, near, choose) {
  const tables = near.map(({ entities, isTrue }, i) => {
    const buttons = named(entities, choose);
    return element(
      "div", {},
      runs.length > 1 ? element("h3", {}, runs[i].title) : "",
      table(
        `Entities nearest to the middle of the picture, ${runs[i].title}`, ["entity", isTrue ? "distance" : "distance in the picture"],
        entities.map((n, j) => element("tr", {}, element("td", {}, buttons[j]), element("td", { class: "number" }, figure(n.distance)))),
      ),
    );
  });
  const open = $("near").querySelector("details")?.open ?? false;
  $("near").replaceChildren(
    element("details", { open }, element("summary", {}, element("h2", {}, "The picture as a table: nearest to the middle")),
      element("div", { class: tables.length > 1 ? "pair" : "" }, ...tables)),
  );
}

// A row a relation, a column a run and a metric.
export function showMetrics(runs, reports) {
  const several = runs.length > 1;
  const headings = ["relation", "queries", ...reports.flatMap((_, i) => ["MRR", "H@10"].map((name) => (several ? `${name} ${runs[i].title}` : name)))];
  const row = (name, parts, attributes = {}) =>
    element(
      "tr", attributes, element("th", { scope: "row" }, name), element("td", { class: "number" }, count(parts[0].queries)),
      ...parts.flatMap((part) => [part.mrr, part["hits@10"]].map((value) => element("td", { class: "number" }, figure(value)))),
    );
  const first = reports[0];
  $("metrics").replaceChildren(
    element("h2", {}, "Metrics by relation"),
    element("p", { class: "note" }, `Split ${first.split}, protocol `, element("strong", {}, first.protocol), ": filtered, both directions, ties at their mean."),
    table(
      `Metrics by relation, split ${first.split}, protocol ${first.protocol}`, headings,
      [
        row("all", reports.map((report) => report.overall), { class: "all" }),
        ...first.relations.map((relation, n) => row(relation.name, reports.map((report) => report.relations[n]))),
      ],
    ),
  );
}

// Questions that the runs answer differently, to be asked with a click. ask({entity, relation, direction})
export function showDifferences(runs, { split, asked, questions }, ask) {
  const rows = questions.map((one) => {
    const text = one.direction === "tail" ? `(${one.entity.name}, ${one.relation.name}, ?)` : `(?, ${one.relation.name}, ${one.entity.name})`;
    return element("tr", {}, element("td", {}, element("button", { type: "button", class: "name", onclick: () => ask(one) }, text)),
      element("td", {}, one.answer.name), ...one.ranks.map((rank) => element("td", { class: "number" }, count(Math.round(rank)))));
  });
  $("differences").replaceChildren(
    element("details", {}, element("summary", {}, element("h2", {}, "Where they differ most")),
      element("p", { class: "note" }, `Ranks of the right answer to ${count(asked)} questions of ${split}: filtered, protocol standard.`),
      table("Questions that the runs answer differently", ["question", "answer", ...runs.map((run) => `rank ${run.title}`)], rows)),
  );
}

export function showTrouble(where, what) {
  $(where).replaceChildren(element("p", { class: "trouble" }, what));
}
