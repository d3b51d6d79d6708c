// Loss and validation MRR by epoch, each in its own measure.

const HEIGHT = 170; // CSS pixels

export function drawCurves(canvas, { records, epochs }, shown, look) {
  const sharpness = Math.min(devicePixelRatio || 1, 2);
  const width = canvas.clientWidth || 320;
  canvas.width = width * sharpness;
  canvas.height = HEIGHT * sharpness;
  const context = canvas.getContext("2d");
  context.scale(sharpness, sharpness);
  context.font = "11px system-ui, sans-serif";
  const [left, right, top, bottom] = [4, width - 4, 14, HEIGHT - 18];
  const x = (epoch) => left + ((right - left) * epoch) / Math.max(epochs, 1);
  context.strokeStyle = look.edgeText;
  context.fillStyle = look.text;
  context.beginPath();
  context.moveTo(left, bottom);
  context.lineTo(right, bottom);
  context.stroke();
  context.textAlign = "right";
  context.fillText(`epoch ${epochs}`, right, HEIGHT - 4);
  context.textAlign = "left";
  context.fillText("0", left, HEIGHT - 4);
  const curve = (pairs, colour, write, align) => {
    if (!pairs.length) return;
    const most = Math.max(...pairs.map(([, value]) => value), 1e-12);
    const y = (value) => bottom - ((bottom - top) * value) / most;
    context.strokeStyle = colour;
    context.lineWidth = 1.8;
    context.beginPath();
    pairs.forEach(([epoch, value], i) => context[i ? "lineTo" : "moveTo"](x(epoch), y(value)));
    context.stroke();
    context.textAlign = align;
    context.fillText(write(pairs.at(-1)[1]), align === "left" ? left : right, 10);
  };
  curve(records.map((one) => [one.epoch, one.loss]), look.kindTexts[3], (value) => `loss ${value.toFixed(4)}`, "left");
  curve(records.filter((one) => one.mrr !== null).map((one) => [one.epoch, one.mrr]), look.kindTexts[2], (value) => `MRR ${value.toFixed(3)}`, "right");
  if (shown >= 0) {
    context.strokeStyle = look.accent;
    context.beginPath();
    context.moveTo(x(shown), top);
    context.lineTo(x(shown), bottom);
    context.stroke();
  }
}
