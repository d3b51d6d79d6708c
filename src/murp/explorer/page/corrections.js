// A link may come from another graph, or from before: what is not there is replaced, and that is said.

import { undrag } from "./link.js";
import { shared, source } from "./shared.js";
import { isStored } from "./sources.js";

// Corrects the fields in place. {said: sentences, closest: entities that may have been meant}
export async function correct(link) {
  const { about, place } = shared;
  const said = [];
  let closest = [];
  if (isStored()) link.view = "map";
  const first = about.relations.find(({ id }) => id === about.relation) ?? about.relations[0];
  const relation = about.relations.find(({ id }) => id === link.relation) ?? about.relations.find(({ name }) => name === link.relation);
  if (link.relation && !relation) said.push(`“${link.relation}” is no relation of ${about.graph.name}: ${first?.name} is shown.`);
  link.relation = (relation ?? first)?.id ?? "";
  if (link.entity && !place.has(link.entity)) {
    try {
      link.entity = (await source.entity(link.entity, 1)).id;
    } catch (error) {
      if (error.status !== 404) throw error;
      closest = error.closest;
      said.push(`“${link.entity}” names no single entity of ${about.graph.name}: the origin is shown.`);
      undrag(link).entity = "";
    }
  }
  return { said, closest };
}
