"""`python -m mainspring.cli`: the command line without its entry point on the path."""

from mainspring.cli.main import main

main()
