"""Read damaged files of every format of dsage, and count what happens: see ``__main__``."""
