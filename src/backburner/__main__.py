"""`python -m backburner`."""

from backburner.cli.main import main

main()
