// The address to the clipboard. A browser keeps that to itself on plain http from another machine: then by the old way.

import { $, announce, element } from "./dom.js";

function copyOldWay(text) {
  const field = element("textarea", { class: "unseen", readonly: true, "aria-hidden": "true" }, text);
  document.body.append(field);
  field.focus({ preventScroll: true });
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  $("link").focus({ preventScroll: true });
  return copied;
}

export async function copyLink() {
  const copied = navigator.clipboard ? await navigator.clipboard.writeText(location.href).then(() => true, () => false) : false;
  if (!copied && !copyOldWay(location.href)) throw new Error("This browser does not let a page copy. Copy the link from the address bar.");
  announce("Link copied");
  $("link").textContent = "Copied";
  setTimeout(() => { $("link").textContent = "Copy link"; }, 1500);
}
