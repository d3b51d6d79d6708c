"""``murp plot`` and ``explore``: pictures of a run, and a run in the browser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from murp.cli.text import Commands, add_run, fast_imports, whole
from murp.display import show
from murp.picture_kinds import KINDS, OPTIONS, SEVERAL, check

_EXPLAINED = (
    f"{'; '.join(f'{kind}: {picture.shows}' for kind, picture in KINDS.items())}. "
    f"{', '.join(SEVERAL)} take several runs"
)


def add_plot(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("plot", help="a picture of a run: the disk, spheres, a question, curves, bars")
    add_run(command, several=True)
    command.add_argument("kind", choices=tuple(KINDS), help=_EXPLAINED)
    command.add_argument("--head", metavar="X", help="id or name of a question's head (disk, question)")
    command.add_argument("--relation", metavar="R", help="id or name of a question's relation (disk, question)")
    command.add_argument("--centre", metavar="X", help="entity to move to the centre (disk, spheres)")
    command.add_argument("--edges", metavar="R", help="relation whose facts are drawn as geodesics (disk)")
    command.add_argument(
        "--colour", choices=("norm", "depth", "relation"), help="colour of the points (disk); default: norm"
    )
    command.add_argument(
        "--projection",
        choices=("distances", "paper"),
        help="of more than two dimensions (disk): keep distances from the centre, or as the paper; default: distances",
    )
    command.add_argument(
        "--split", choices=("test", "valid", "train"), help="split to evaluate (relations); default: test"
    )
    command.add_argument(
        "--protocol", choices=("standard", "paper"), help="protocol of the ranks (relations); default: standard"
    )
    command.add_argument("--out", metavar="FILE", help=".png, .svg or .pdf; default: KIND.png in the run folder")
    command.add_argument("--force", action="store_true", help="overwrite the file --out")
    command.set_defaults(run=run_plot)


def run_plot(options: argparse.Namespace) -> None:
    """Draw and say where the picture is."""
    told = {option: getattr(options, option) for option in OPTIONS}
    check(options.kind, told, len(options.path))
    with fast_imports():
        from murp.api.training import load
        from murp.plots.pictures import picture
        from murp.plots.style import picture_path, save
        from murp.prediction.results import check_place

    path = picture_path(Path(options.out) if options.out else Path(options.path[0]) / f"{options.kind}.png")
    if options.out:
        check_place(path, force=options.force)
    runs = [load(folder, checkpoint=options.checkpoint, device=options.device) for folder in options.path]
    save(picture(runs, options.kind, told), path)
    print(f"picture: {path}")


def add_explore(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("explore", help="show a run in the browser: the disk, search, predictions, metrics")
    command.add_argument("path", metavar="RUN", help="run folder that `murp train` made")
    command.add_argument("others", metavar="RUN2", nargs="*", help="other runs on the same graph, side by side")
    command.add_argument(
        "--checkpoint",
        choices=("best", "last"),
        help="weights of the best validation, or the newest weights; default: best",
    )
    command.add_argument(
        "--port", type=whole(least=0), default=8000, metavar="N", help="default: 8000; 0: any free port"
    )
    command.add_argument("--host", default="127.0.0.1", help="address to bind to; default: 127.0.0.1, this machine")
    command.add_argument(
        "--export", metavar="FILE", help="do not serve; write one self-contained page with the disk and the search"
    )
    command.add_argument(
        "--film",
        metavar="FILE",
        help="write a film of the training, if it used --explore: .gif, .html, or .mp4 if ffmpeg is installed",
    )
    command.add_argument(
        "--columns",
        metavar="FILE",
        help="values to colour points by; tab-separated, a first row of column names, then rows of id and values",
    )
    command.set_defaults(run=run_explore)


def run_explore(options: argparse.Namespace) -> None:
    """Serve until Ctrl-C, or write the page and say where it is."""
    with fast_imports():
        import torch

        from murp.api.training import load
        from murp.errors import MurpError

    # Answers take a millisecond: threads would cost more than they bring.
    torch.set_num_threads(1)
    paths = [options.path, *options.others]
    if options.film is not None:
        from murp.explorer.animation import write_animation

        if len(paths) > 1 or options.export is not None:
            raise MurpError("--film writes the film of one run: give one run folder, and no --export.")
        write_animation(Path(options.path), Path(options.film))
        print(f"film: {options.film}")
        return
    if options.export is not None:
        if len(paths) > 1:
            raise MurpError("--export writes the page of one run: give one run folder.")
        page = Path(options.export)
        load(options.path, checkpoint=options.checkpoint, device="cpu").page(page)
        print(f"page: {page}")
        return

    from murp.explorer.collection import Collection
    from murp.explorer.columns import read_columns
    from murp.explorer.server import serve, warning
    from murp.web.server import address_of, bind

    bound = bind(options.host, options.port)
    runs = [load(path, checkpoint=options.checkpoint, device="cpu") for path in paths]
    collection = Collection(
        runs, None if options.columns is None else read_columns(Path(options.columns), runs[0].graph)
    )
    if (told := warning(options.host)) is not None:
        print(f"murp: {told}", file=sys.stderr)
    # Whoever asked for a server gets one, be the address read or not.
    show(f"explorer: {address_of(bound)}  (Ctrl-C ends it)", sys.stdout)
    serve(collection, bound, options.host)
