"""`python -m memorist`: the command line, by the very Python that has it."""

from memorist.cli.main import main

if __name__ == "__main__":
    main()
