// The tables beside the picture: everything it shows, for those who read rather than look.

import { $, count, element, figure, table } from "./dom.js";

const MODELS = { murp: "MuRP", mure: "MuRE" };

export const title = (run) => `${MODELS[run.model] ?? run.model} d=${run.dim}`;

const named = (item, choose) =>
  element("button", { type: "button", class: "name", title: item.id, onclick: () => choose(item.id) }, item.name);

// One entity in every run: gloss, norm, biases, neighbours.
export function showCard(runs, cards, choose) {
  const first = cards[0];
  const several = runs.length > 1;
  const rows = [
    ["norm", (card) => card.norm],
    ...Object.keys(first.biases).map((role) => [`bias as ${role}`, (card) => card.biases[role]]),
  ];
  $("card").replaceChildren(
    element("h2", { id: "card-title" }, first.name, " ", first.id === first.name ? "" : element("code", {}, first.id)),
    first.gloss ? element("p", { class: "gloss" }, first.gloss) : "",
    table(
      `Norm and biases of ${first.name}`, ["", ...runs.map((run) => (several ? title(run) : ""))],
      rows.map(([name, value]) =>
        element("tr", {}, element("th", { scope: "row" }, name), ...cards.map((card) => element("td", {}, figure(value(card)))))),
    ),
    ...cards.filter((card) => card.neighbours.length).map((card, i) =>
      element(
        "p", { class: "neighbours" }, several ? `${title(runs[i])}, nearest:` : "nearest:",
        ...card.neighbours.map((n, j) => element("span", {}, named(n, choose), j + 1 < card.neighbours.length ? "," : "")),
      ),
    ),
  );
}

export function showWelcome(about) {
  const { graph } = about;
  $("card").replaceChildren(
    element("h2", { id: "card-title" }, graph.name),
    element("p", {}, `${count(graph.entities)} entities, ${about.relations.length} relations, ${count(graph.train)} facts to learn from, `,
      `${count(graph.valid)} for validation, ${count(graph.test)} for the test.`),
    element("p", { class: "gloss" }, "Search an entity or click a point: it comes to the middle, and its likely facts appear here."),
  );
}

const OWN = "σ(φ), the model's own: it ranks answers, but nothing makes it the share of them that is true before `murp calibrate`.";
const CALIBRATED = "Calibrated on the validation facts: the probability of a fact against one random corruption of it.";

// What the probabilities of an answer are worth.
function probabilityHeading(predictions) {
  const calibrated = predictions.some((p) => p.calibrated !== undefined);
  const [word, meaning] = calibrated ? ["calibrated", CALIBRATED] : ["model's own", OWN];
  return element("span", { title: meaning }, "prob. ", element("small", {}, word));
}

// The ranked answers of every run to one question.
export function showAnswers(runs, question, answers, hooks) {
  const asked = `(${question.head ?? "?"}, ${question.relation}, ${question.tail ?? "?"})`;
  const tables = answers.map((answer, i) =>
    element(
      "div", {},
      runs.length > 1 ? element("h3", {}, title(runs[i])) : "",
      table(
        `Most probable answers to ${asked}, ${title(runs[i])}`,
        ["", "answer", probabilityHeading(answer.predictions), ""],
        answer.predictions.map((p) => {
          const probability = p.calibrated ?? p.probability;
          return element(
            "tr", { onpointerenter: () => hooks.mark(p.id), onpointerleave: () => hooks.mark(null) },
            element("td", { class: "rank" }, String(p.rank)),
            element("td", {}, named(p, hooks.choose)),
            element("td", { class: "probability" }, element("meter", { min: 0, max: 1, value: probability, "aria-hidden": "true" }), figure(probability)),
            element("td", {}, p.known ? element("span", { class: "known", title: `stated in ${p.known}` }, p.known) : element("span", { class: "new" }, "new")),
          );
        }),
      ),
    ),
  );
  $("answers").replaceChildren(
    element("h2", { id: "answers-title" }, "Answers to ", element("span", { class: "asked" }, asked)),
    element("div", { class: tables.length > 1 ? "pair" : "" }, ...tables),
  );
}

export function showNear(runs, lists, choose) {
  const tables = lists.map((nearest, i) =>
    element(
      "div", {},
      runs.length > 1 ? element("h3", {}, title(runs[i])) : "",
      table(
        `Entities nearest to the middle of the picture, ${title(runs[i])}`, ["entity", "distance"],
        nearest.map((n) => element("tr", {}, element("td", {}, named(n, choose)), element("td", { class: "number" }, figure(n.distance)))),
      ),
    ),
  );
  $("near").replaceChildren(
    element("details", {}, element("summary", {}, element("h2", { id: "near-title" }, "The picture as a table: nearest to the middle")),
      element("div", { class: tables.length > 1 ? "pair" : "" }, ...tables)),
  );
}

// A row a relation, a column a run and a figure.
export function showMetrics(runs, reports) {
  const several = runs.length > 1;
  const headings = ["relation", "queries", ...reports.flatMap((_, i) => ["MRR", "H@10"].map((name) => (several ? `${name} ${title(runs[i])}` : name)))];
  const row = (name, parts, attributes = {}) =>
    element(
      "tr", attributes, element("th", { scope: "row" }, name), element("td", { class: "number" }, count(parts[0].queries)),
      ...parts.flatMap((part) => [part.mrr, part["hits@10"]].map((value) => element("td", { class: "number" }, figure(value)))),
    );
  const first = reports[0];
  $("metrics").replaceChildren(
    element("h2", { id: "metrics-title" }, "Figures by relation"),
    element("p", { class: "note" }, `Split ${first.split}, protocol `, element("strong", {}, first.protocol), ": filtered, both directions, ties at their mean."),
    table(
      `Figures by relation, split ${first.split}, protocol ${first.protocol}`, headings,
      [
        row("all", reports.map((report) => report.overall), { class: "all" }),
        ...first.relations.map((relation, n) => row(relation.name, reports.map((report) => report.relations[n]))),
      ],
    ),
  );
}

export function showTrouble(where, what) {
  $(where).replaceChildren(element("p", { class: "trouble" }, what));
}
