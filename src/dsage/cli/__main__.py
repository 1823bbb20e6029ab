"""Lets ``python -m dsage.cli`` do what ``dsage`` does."""

from dsage.cli import main

if __name__ == "__main__":
    main()
