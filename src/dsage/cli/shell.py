"""Messages of the package in the words of the command line."""

from __future__ import annotations

import re

_OPTIONS = {
    "checkpoint": "--checkpoint",
    "classes": "--classes",
    "decimal": "--decimal",
    "discrete": "--discrete",
    "drop": "--drop",
    "encoding": "--encoding",
    "estimand": "--estimand",
    "graph": "--graph",
    "groups": "--groups",
    "loss": "--loss",
    "method": "--method",
    "n_jobs": "--jobs",
    "n_resamples": "--resamples",
    "path": "RUN",
    "random_state": "--seed",
    "sampler": "--sampler",
    "score": "--score",
    "seconds": "--time",
    "sep": "--sep",
    "target": "--target",
    "tolerance": "--tolerance",
    "trust_pickle": "--trust-pickle",
    "trusted": "--trust",
}
# What is said of Python alone, and what that is here.
_PHRASES = {
    "an explanation is written by explanation.save(path)": "such a file is written by"
    " dsage explain --out",
}
_FLAGS = ("trust_pickle",)
_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))
# A setting in Python with the option behind it, such as drop=['a'] (--drop 'a').
_BOTH = re.compile(rf"\b(?:{_NAMES})=(?:\[[^\]]*\]|'[^']*'|\"[^\"]*\"|\w+) \((--[^()]*)\)")
_SETTING = re.compile(rf"\b({_NAMES})=(?:'([^'\s]*)'|\"([^\"\s]*)\"|([\w.]+))?")
_CULPRIT = re.compile(rf"^({_NAMES})(?= must be )")


def in_shell(text: str, **names: str) -> str:
    """Return a message with the options of the command line instead of Python's parameters.

    Parameters
    ----------
    text : str
        The message.
    **names : str
        What a parameter is called here, where it is not called as usual.

    Examples
    --------
    >>> in_shell("drop must be one of the columns; got 'a'. Did you mean 'b'?")
    "--drop must be one of the columns; got 'a'. Did you mean 'b'?"
    >>> in_shell('Look at the audit, or estimate with estimand="sage".')
    'Look at the audit, or estimate with --estimand sage.'
    >>> in_shell("leave it out with drop=['a'] (--drop 'a')")
    "leave it out with --drop 'a'"
    >>> in_shell("path must be a file", path="--graph")
    '--graph must be a file'
    """
    known = {**_OPTIONS, **names}
    for phrase, meant in _PHRASES.items():
        text = text.replace(phrase, meant)

    def setting(found: re.Match[str]) -> str:
        name, *values = found.groups()
        value = next((each for each in values if each), "").rstrip(".")
        ending = "." if found.group().endswith(".") else ""
        value = "" if name in _FLAGS else value
        return f"{known[name]} {value}".rstrip() + ending

    text = _CULPRIT.sub(lambda found: known[found.group(1)], text)
    text = _BOTH.sub(r"\1", text)
    return _SETTING.sub(setting, text)
