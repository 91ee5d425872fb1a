"""`python -m recollect`: the command line, by the very Python that has it."""

from recollect.cli.main import main

if __name__ == "__main__":
    main()
