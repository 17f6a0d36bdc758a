"""The command line: `minidl plot LOG... -o curves.png`, also as `python -m minidl`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .train.plot import plot_logs
from .version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0 done, 1 it failed (the reason is on standard error), 2 wrong usage."""
    arguments = _parser().parse_args(argv)
    try:
        output = plot_logs(arguments.logs, arguments.output, by=arguments.by, log_scale=arguments.log_scale)
    except (ImportError, OSError, ValueError) as error:
        print(f"minidl plot: {error}", file=sys.stderr)
        return 1
    print(f"wrote {output}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="minidl", description="Tools of the minidl deep-learning framework.")
    parser.add_argument("--version", action="version", version=f"minidl {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    plot = commands.add_parser("plot", help="draw the curves of training logs",
                               description="Draw loss and metric of training logs, one curve a log.")
    plot.add_argument("logs", nargs="+", metavar="LOG", help="a log of CSVProgressWriter or ProgressPrinter")
    plot.add_argument("-o", "--output", default="curves.png", help="the picture; its suffix says the format (%(default)s)")
    plot.add_argument("--by", choices=("samples", "epochs"), default="samples", help="horizontal axis (%(default)s)")
    plot.add_argument("--log-scale", action="store_true", help="a logarithmic axis of the loss")
    return parser


if __name__ == "__main__":
    sys.exit(main())
