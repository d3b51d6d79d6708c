"""The growth of a run's picture as a file: an animated GIF, an MP4 (where ffmpeg is installed) or a page to send."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from murp.errors import MurpError
from murp.explorer.export import one_file
from murp.explorer.live import Live
from murp.explorer.snapshots import snapshot_scaling
from murp.files import replacing

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 440  # pixels
FINER = 2  # drawn larger and made smaller, so that edges are smooth
EVERY_MS = 90
LAST_MS = 2500  # the last picture stays
NAMES = 14
FRAMES = 60  # of a film that is pixels: a slide shows no more, and a file of more is too large to send
EDGES = 900  # of the most important entities
LEVELS = ("#3b0f70", "#5a2a8c", "#3b5ba8", "#2a7fb8", "#35a0b5", "#5fb89a", "#9dc66b", "#d8b63a")
INK, LINE = "#17212e", "#c3ccd6"


def write_animation(run: Path, out: Path) -> None:
    """Write the film of a run folder to ``out``: .gif, .mp4 or .html. A file that exists is refused."""
    makers = {".gif": _write_gif, ".mp4": _write_mp4, ".html": _write_page}
    if out.suffix not in makers:
        raise MurpError(f"{out}: a film is a .gif, .mp4 or .html file.")
    if out.exists():
        raise MurpError(f"{out} exists already. Choose another name, or remove it first.")
    live = Live(run)
    live.snapshots.check()
    try:
        with replacing(out) as part:
            makers[out.suffix](live, part)
    except OSError as error:
        raise MurpError(f"could not write {out}: {error.strerror}. Choose a folder that can be written.") from error


def _write_gif(live: Live, part: Path) -> None:
    from PIL.Image import Dither

    first, *others = [frame.quantize(48, dither=Dither.NONE) for frame in frames(live)]
    durations = [EVERY_MS] * len(others) + [LAST_MS]
    first.save(part, format="GIF", save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


def _write_mp4(live: Live, part: Path) -> None:
    if shutil.which("ffmpeg") is None:
        raise MurpError("an .mp4 is made by ffmpeg, which is not installed. Install it, or ask for a .gif or .html.")
    with tempfile.TemporaryDirectory() as scratch:
        number = 0
        for frame in frames(live):
            frame.save(Path(scratch) / f"{number:05d}.png")
            number += 1
        for _ in range(LAST_MS // EVERY_MS):
            frame.save(Path(scratch) / f"{number:05d}.png")
            number += 1
        rate = f"{1000 / EVERY_MS:.2f}"
        made = subprocess.run(
            ["ffmpeg", "-v", "error", "-y", "-framerate", rate, "-i", f"{scratch}/%05d.png", "-pix_fmt", "yuv420p",
             "-f", "mp4", str(part)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if made.returncode:
        raise MurpError(f"ffmpeg could not make the film: {made.stderr.strip() or made.returncode}.")


def _write_page(live: Live, part: Path) -> None:
    """The page of a training with all its pictures in it."""
    pictures = {str(epoch): live.frame(epoch) for epoch in live.snapshots.epochs()}
    data = {"training": {**live.about(), "done": True}, "points": live.still(), "pictures": pictures}
    sliders = data["training"]["sliders"] or {"dimensions": []}
    data["embeddings"] = {str(one["dim"]): live.embedding(one["dim"]) for one in sliders["dimensions"]}
    part.write_text(one_file("live.html", "live.js", data), encoding="utf-8")


def frames(live: Live) -> Iterator[Image]:
    """The pictures in order as pixels; of many, evenly chosen ones with the first and the last."""
    from PIL import Image, ImageDraw

    epochs = live.snapshots.epochs()
    chosen = np.unique(np.linspace(0, len(epochs) - 1, min(FRAMES, len(epochs))).round().astype(int))
    epochs = [epochs[i] for i in chosen]
    scaling = snapshot_scaling(live.model(), live.snapshots.frame(epochs[-1]))
    still = live.still()
    levels = np.frombuffer(_bytes(still["depth"]), "u1")
    edges = np.frombuffer(_bytes(still["edges"]), "<u4").reshape(-1, 2)[:EDGES]
    losses = {record["epoch"]: record for record in live.about()["records"]}
    side, radius = SIDE * FINER, SIDE * FINER * 0.46
    middle = np.array([side / 2, side / 2 + 0.02 * side])
    small, large = _font(12 * FINER), _font(17 * FINER)
    flat = live.model().geometry.is_flat
    for epoch in epochs:
        places = live.drawn(epoch, scaling)
        if flat:
            places = places / (1 + np.linalg.norm(places, axis=1, keepdims=True))
        at = middle + radius * places * [1, -1]
        image = Image.new("RGB", (side, side), "white")
        pen = ImageDraw.Draw(image)
        pen.ellipse([*(middle - radius), *(middle + radius)], outline=INK, width=FINER)
        for a, b in edges:
            pen.line([*at[a], *at[b]], fill=LINE, width=1)
        for i in range(len(at) - 1, -1, -1):  # the most important on top
            dot = FINER * (1.4 + 2.2 / (1 + i / 60))
            pen.ellipse([*(at[i] - dot), *(at[i] + dot)], fill=LEVELS[min(int(levels[i]), 7)])
        for name, (x, y) in zip(still["names"][:NAMES], at[:NAMES], strict=False):
            halo: Any = {"stroke_width": FINER, "stroke_fill": "white"}
            left, anchor = beside(x, pen.textlength(name[:24], font=small), side)
            pen.text((left, y), name[:24], fill=INK, font=small, anchor=anchor, **halo)
        loss = f", loss {losses[epoch]['loss']:.4f}" if epoch in losses else ""
        word = "epoch" if losses else "step"
        title = f"{live.graph.name}: {word} {epoch}{loss}"
        pen.text((side / 2, 14 * FINER), title, fill=INK, font=large, anchor="mm")
        yield image.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def beside(x: float, width: float, side: float) -> tuple[float, str]:
    """Where a name begins or ends, and which of both: to the right of its point at x, or to the left where the picture
    ends too soon."""
    gap = 5 * FINER
    return (x + gap, "lm") if x + gap + width + FINER <= side else (x - gap, "rm")


def _font(size: int) -> Any:
    from matplotlib import get_data_path
    from PIL import ImageFont

    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", size)


def _bytes(packed: dict[str, str]) -> bytes:
    import base64

    return base64.b64decode(packed["base64"])
