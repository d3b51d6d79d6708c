// What went wrong, said at the foot of the page until it is closed or something else is chosen.

import { $, element } from "./dom.js";

export function quiet() {
  $("trouble").hidden = true;
}

// offers: buttons to go on with
export function complain(message, offers = []) {
  const close = element("button", { type: "button", onclick: quiet }, "Close");
  $("trouble").replaceChildren(message, ...[...offers, close].flatMap((button) => [" ", button]));
  $("trouble").hidden = false;
}

// The same work, whose failure is said.
export const guarded = (work) => async (...given) => {
  quiet();
  try {
    await work(...given);
  } catch (error) {
    complain(error.message);
  }
};

// Entities that may have been meant, as the server writes them: "name [id]", or the id alone.
export const suggestions = (closest, choose) =>
  closest.map((label) => {
    const id = label.match(/ \[([^[]+)\]$/)?.[1] ?? label;
    return element("button", { type: "button", onclick: () => choose(id) }, label);
  });
