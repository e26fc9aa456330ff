"""`python -m bench`, the same as the `bench` command."""

from bench.cli import main

if __name__ == "__main__":
    main()
