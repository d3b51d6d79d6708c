// A tree in spaces of other curvature and dimension: two sliders, and what they show as a table.

import { $, element, figure, table } from "./dom.js";
import { unpack } from "./sources.js";

const FLAT = 1e-4; // the curvature that is drawn for 0
const FILLED = 0.97; // of the window

// A layout with levels as far apart in a space of curvature -c, as the unit disk shows it: {points, zoom, own}. What lies at the
// distance d from the middle goes to √c d, and the picture is magnified until the tree fills the window.
export function curved(points, curvature) {
  const root = Math.sqrt(Math.max(curvature, FLAT));
  const found = new Float32Array(points.length);
  let most = 0;
  for (let i = 0; i < points.length; i += 2) {
    const radius = Math.min(Math.hypot(points[i], points[i + 1]), 1 - 1e-7);
    const now = radius > 0 ? Math.tanh(root * Math.atanh(radius)) : 0;
    const scale = radius > 0 ? now / radius : 0;
    found[i] = points[i] * scale;
    found[i + 1] = points[i + 1] * scale;
    most = Math.max(most, now);
  }
  const zoom = Math.max(1, FILLED / Math.max(most, 1e-6));
  return { points: found, zoom, own: zoom };
}

const shortly = (value) => (value ? `−${value}` : "0, flat");

// sliders: of a layout; show({points, zoom, note}), or show(null) for the layout as it is; last(): its points
export function startCompared(sliders, source, last, show) {
  const { curvatures, dimensions } = sliders;
  const own = curvatures.findIndex(({ curvature }) => curvature === 1);
  $("sliders").hidden = false;
  Object.assign($("curvature"), { min: 0, max: curvatures.length - 1, value: own });
  Object.assign($("dimension"), { max: dimensions.length, value: 0 });
  const say = () => {
    const at = curvatures[$("curvature").value];
    const dim = dimensions[$("dimension").value - 1];
    $("curvature-said").textContent = shortly(at.curvature);
    $("dimension-said").textContent = dim ? `${dim.dim}, Poincaré embedding` : "2, layout";
    for (const id of ["curvature", "dimension"]) $(id).setAttribute("aria-valuetext", $(`${id}-said`).textContent);
    for (const row of $("compared").querySelectorAll("tbody tr")) row.removeAttribute("aria-current");
    const shown = dim ? `dim-${dim.dim}` : `curvature-${$("curvature").value}`;
    $("compared").querySelector(`[data-row="${shown}"]`).setAttribute("aria-current", "true");
  };
  const row = (key, name, one) => element("tr", { "data-row": key }, element("th", { scope: "row" }, name),
    element("td", { class: "number" }, figure(one.mean_rank, 2)), element("td", { class: "number" }, figure(one.map)));
  const headings = (what) => [what, "mean rank", "MAP"];
  $("compared").replaceChildren(
    element("h2", {}, "Curvature and dimension"),
    table("How well the tree can be read from the layout, by curvature", headings("curvature"),
      curvatures.map((one, i) => row(`curvature-${i}`, shortly(one.curvature), one))),
    table("How well the tree can be read from Poincaré embeddings, by dimension", headings("dimension"),
      dimensions.map((one) => row(`dim-${one.dim}`, String(one.dim), one))),
    element("p", { class: "note" }, "For every entity all others are ordered by distance. Mean rank: where those above it in the tree stand among those that are not (1 is best). MAP: mean average precision, 1 where those above are always nearest."),
  );
  $("curvature").addEventListener("input", () => {
    $("dimension").value = 0;
    say();
    const { curvature } = curvatures[$("curvature").value];
    const note = curvature
      ? `The same layout in a space of curvature −${curvature}: its levels are as far apart.`
      : "The same layout in a flat space: its levels are as far apart.";
    return show(curvature === 1 ? null : { ...curved(last(), curvature), note });
  });
  $("dimension").addEventListener("input", async () => {
    $("curvature").value = own;
    say();
    const dim = dimensions[$("dimension").value - 1];
    const note = dim && `A Poincaré embedding in ${dim.dim} dimensions, learned from pairs of an entity and one above it. Distances from the middle are drawn ${figure(1 / dim.drawn, 1)} times shorter: most entities would lie on the rim.`;
    const picture = dim ? { points: unpack((await source.embedding(dim.dim)).points), zoom: 1, note } : null;
    if (dim === dimensions[$("dimension").value - 1]) await show(picture);
  });
  say();
  return { reset() { $("curvature").value = own; $("dimension").value = 0; say(); } };
}
