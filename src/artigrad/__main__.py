"""Command line interface, `python -m artigrad`."""

from .cli import app

app(prog_name="artigrad")
