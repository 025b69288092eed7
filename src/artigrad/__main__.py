"""python -m artigrad: the command line."""

from .cli import app

app(prog_name="artigrad")
