// A picture: the canvases of a disk in a figure.

import { $, element } from "./dom.js";
import { Disk } from "./disk.js";

// label: what it shows and which keys it knows, for who does not see it; parts: laid over the disk; beside: after it
export function figureOf({ id = null, caption = null, label, space, entities, look, parts = [], beside = [] }) {
  const dots = element("canvas", { class: "dots", "aria-hidden": "true" });
  const overlay = element("canvas", { class: "overlay", tabindex: "0", role: "application", "aria-roledescription": "hyperbolic map", "aria-label": label });
  const heading = caption && element("figcaption", {}, ...caption);
  $("disks").append(element("figure", { id }, heading, element("div", { class: "disk" }, dots, overlay, ...parts), ...beside));
  return new Disk({ dots, overlay }, space, entities, look);
}
