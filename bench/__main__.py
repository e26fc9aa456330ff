"""The `bench` command, and `python -m bench`."""

import sys


def main() -> None:
    """Run the command; also where it is interrupted while the package is still being loaded, that is said in a line."""
    try:
        from bench import cli

        cli.main()
    except KeyboardInterrupt:
        print("bench: interrupted before it began", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
