// The card of the chosen entity: its known facts, what is likely, its way to the top, its neighbours.

import { $, count, element, figure, plural, table } from "./dom.js";
import { named, unseen } from "./panels.js";

// Fills the card. A reader who chose in a table beside the picture goes on from here: the button itself may be gone.
function fillCard(heading, ...parts) {
  const fromPanel = $("panel").contains(document.activeElement);
  const top = element("h2", { id: "card-title", tabindex: "-1" }, ...heading);
  $("card").replaceChildren(top, ...parts);
  if (fromPanel) top.focus();
}

// One entity in every run: gloss, norm, biases, neighbours, facts. ask({entity, relation, direction})
export function showCard(runs, cards, choose, ask) {
  const [{ id, name, gloss, path }] = cards;
  const several = runs.length > 1;
  const roles = [...new Set(cards.flatMap((card) => Object.keys(card.biases)))];
  const rows = [["norm", (card) => card.norm], ...roles.map((role) => [`bias as ${role}`, (card) => card.biases[role]])];
  const neighbours = (card, run) => [
    several ? `${run.title}, nearest:` : "nearest:",
    ...named(card.neighbours, choose).map((button, j) => element("span", {}, button, j + 1 < card.neighbours.length ? "," : "")),
  ];
  // Calibrated beside calibrated, or the models' own beside each other.
  const isCalibrated = cards.every((card) => card.likely.every((fact) => fact.calibrated !== null));
  fillCard(
    [name, " ", id === name ? "" : element("code", {}, id)],
    gloss ? element("p", { class: "gloss" }, gloss) : "",
    path.length > 1 ? element("p", { class: "path" }, ...named(path.slice(1).reverse(), choose).flatMap((button) => [button, " › "]), element("strong", {}, name)) : "",
    table(
      `Norm and biases of ${name}`, [unseen("quantity"), ...runs.map((run) => (several ? run.title : unseen("value")))],
      rows.map(([what, value]) =>
        element("tr", {}, element("th", { scope: "row" }, what), ...cards.map((card) => element("td", {}, figure(value(card)))))),
    ),
    ...cards.map((card, i) => (card.neighbours.length ? element("p", { class: "neighbours" }, ...neighbours(card, runs[i])) : "")),
    ...cards.map((card, i) => likely(card, several ? `, ${runs[i].title}` : "", choose, isCalibrated)),
    knownFacts(cards[0], choose, ask),
  );
}

const sentence = (name, { relation, side }, other) => (side === "tail" ? [`${relation.name} `, other] : [other, ` ${relation.name} ${name}`]);

// What the model finds likely and no split states.
function likely(card, ofRun, choose, isCalibrated) {
  if (!card.likely.length) return "";
  const buttons = named(card.likely, choose);
  return element("div", { class: "likely" },
    element("h3", {}, `Likely new facts${ofRun} `, element("small", {}, isCalibrated ? "calibrated" : "model's own probability")),
    table(`Likely new facts of ${card.name}${ofRun}`, ["fact", "prob.", unseen("new")],
      card.likely.map((fact, i) => element("tr", {}, element("td", {}, ...sentence(card.name, fact, buttons[i])),
        element("td", { class: "number" }, figure(isCalibrated ? fact.calibrated : fact.probability)), element("td", {}, element("span", { class: "new" }, "new"))))));
}

// What the graph states, by relation, and which split does.
function knownFacts(card, choose, ask) {
  if (!card.known_facts.length) return "";
  const total = card.known_facts.reduce((sum, group) => sum + group.total, 0);
  const groups = card.known_facts.map((group) => {
    const question = { entity: card, relation: group.relation, direction: group.side };
    const asked = group.side === "tail" ? `(${card.name}, ${group.relation.name}, ?)` : `(?, ${group.relation.name}, ${card.name})`;
    const facts = named(group.facts, choose).map((button, i) =>
      element("li", {}, button, group.facts[i].known === "train" ? "" : element("span", { class: "known", title: `in ${group.facts[i].known}` }, group.facts[i].known)));
    const more = group.total > group.facts.length ? element("li", { class: "note" }, `and ${count(group.total - group.facts.length)} more`) : "";
    return element("li", {}, element("button", { type: "button", class: "name", title: "ask this question", onclick: () => ask(question) }, asked), ` ${count(group.total)}`, element("ul", { class: "facts" }, ...facts, more));
  });
  return element("details", { class: "known-facts", open: true }, element("summary", {}, element("h3", {}, `In the graph: ${plural(total, "fact")}`)), element("ul", {}, ...groups));
}

// What is shown before anything is chosen, with questions to begin with.
export function showWelcome(about, ask) {
  const { graph } = about;
  const questions = about.suggestions.map((one) => {
    const text = one.direction === "tail" ? `(${one.entity.name}, ${one.relation.name}, ?)` : `(?, ${one.relation.name}, ${one.entity.name})`;
    return element("li", {}, element("button", { type: "button", class: "suggestion", onclick: () => ask(one) }, text));
  });
  fillCard(
    [graph.name],
    element("p", {}, `${plural(graph.entities, "entity", "entities")}, ${plural(about.relations.length, "relation")}, ${plural(graph.train, "fact")} to learn from, `,
      `${count(graph.valid)} for validation, ${count(graph.test)} for the test.`),
    questions.length ? element("h3", {}, "Questions to begin with") : "",
    element("ul", { class: "suggestions" }, ...questions),
    element("p", { class: "gloss" }, "Or search an entity, or click a point: it comes to the middle, and its likely facts appear here."),
  );
}
