"""Pictures small enough for a repository."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

MOST_BYTES = 300_000


def write(png: bytes, path: Path) -> None:
    """Write the picture; one that is large makes do with 256 colours."""
    if len(png) < MOST_BYTES:
        path.write_bytes(png)
    else:
        Image.open(io.BytesIO(png)).convert("RGB").quantize(256, kmeans=2, dither=Image.Dither.NONE).save(
            path, optimize=True
        )
