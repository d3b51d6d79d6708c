// What a point is, beside the pointer: name, gloss, norm, bias, neighbours.

import { element, figure } from "./dom.js";

export class Hover {
  constructor(source, tip, run) {
    Object.assign(this, { source, tip, run });
  }

  show(id, name, x, y) {
    if (this.id === id) return this.move(x, y);
    this.id = id;
    this.tip.replaceChildren(element("strong", {}, name));
    this.tip.hidden = false;
    this.move(x, y);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.fill(id), 70);
    return undefined;
  }

  async fill(id) {
    const card = await this.source.entity(id, this.run).catch(() => null);
    if (!card || this.id !== id) return;
    const biases = Object.entries(card.biases).map(([role, bias]) => `${role} bias ${figure(bias, 2)}`);
    this.tip.replaceChildren(
      element("strong", {}, card.name),
      card.gloss ? element("span", {}, card.gloss) : "",
      element("small", {}, [`norm ${figure(card.norm)}`, ...biases].join(" · ")),
      card.neighbours.length ? element("small", {}, `near ${card.neighbours.map((n) => n.name).join(", ")}`) : "",
    );
    this.move(...this.at);
  }

  move(x, y) {
    this.at = [x, y];
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    this.tip.style.left = `${Math.max(8, Math.min(x + 16, innerWidth - width - 8))}px`;
    this.tip.style.top = `${y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18}px`;
  }

  hide() {
    this.id = null;
    clearTimeout(this.waiting);
    this.tip.hidden = true;
  }
}
