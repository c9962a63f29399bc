"""`python -m popcd`."""

from popcd.cli import main

main(prog_name="popcd")
