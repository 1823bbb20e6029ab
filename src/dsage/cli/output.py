"""Output for the user: errors in one line, notes, phases of a run, files.

Nothing heavy is imported at the top: ``dsage --help`` needs this module.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from dsage._check import Setting
    from dsage.result.events import Event

FAILED = 2
INTERRUPTED = 130

PAGES = (".html", ".htm")
PICTURES = (".png", ".svg", ".pdf")

PHASES = {
    "graph": "Learning the graph ...",
    "sampler": "Scoring samplers ...",
    "estimate": "Estimating ...",
    "check": "Comparing with other samplers ...",
}
"""The phases of a run, in words."""

Writers = Mapping[str, Callable[[Path], object]]
"""For each option with a file, how to write it."""

_SAME_NAME = (
    "checkpoint classes confidence cv decimal discrete drop encoding estimand graph groups loss"
    " forbidden method orderings output required sampler score sep sources target tiers"
    " tolerance values"
)
_OPTIONS = {
    **{name: f"--{name}" for name in _SAME_NAME.split()},
    "interactions": "--interactions",
    "kinds": "--kind",
    "measures": "--measure",
    "n_jobs": "--jobs",
    "n_resamples": "--resamples",
    "min_share": "--min-share",
    "path": "RUN",
    "random_state": "--seed",
    "sampler_check": "--no-sampler-check",
    "seconds": "--time",
    "trust_pickle": "--trust-pickle",
    "trusted": "--trust",
}
"""The options for parameters of the package."""

# Errors and warnings


class OneLineGroup(typer.core.TyperGroup):
    """Commands that report wrong options in one line, with suggestions."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        """Run a command and exit with its code."""
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
        except typer.Abort:
            sys.exit(INTERRUPTED)
        except Exception as error:
            # The classes of these errors are not public, and differ between versions of typer.
            if not hasattr(error, "format_message"):
                raise
            text = str(error.format_message()).strip()
            # An error without text has already shown the help.
            if text:
                typer.echo(_visible(f"Error: {_add_advice(text)}"), err=True)
            sys.exit(FAILED if text else 0)
        sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def guard(*, debug: bool) -> Iterator[None]:
    """Report errors in one line, unless `debug` is true, and warnings as notes."""
    with warnings.catch_warnings():
        _show_warnings_as_notes()
        try:
            yield
        except KeyboardInterrupt:
            note("Interrupted before there was a result.")
            raise typer.Exit(INTERRUPTED) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if debug:
                raise
            note(f"Error: {one_line(error)}")
            raise typer.Exit(FAILED) from None


def one_line(error: BaseException) -> str:
    """Return an error in one line, with its notes, naming options instead of parameters."""
    problem = getattr(error, "problem", None)
    text = str(error)
    if problem is not None:
        option = _OPTIONS.get(problem.parameter, problem.parameter)
        text = problem.worded(option, word_setting)
    text = _join_lines(" ".join([text, *getattr(error, "__notes__", ())])) or "no reason was given"
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
        return text
    return f"{type(error).__name__}: {text.rstrip('.')}. Add --debug to see where it happened."


def word_setting(setting: Setting) -> str:
    """Return a setting as it is typed on the command line."""
    option = _OPTIONS.get(setting.parameter)
    if option is None:
        return str(setting)
    if setting.value is None or setting.value is True:
        return option
    values = setting.value if isinstance(setting.value, (list, tuple)) else [setting.value]
    if isinstance(setting.value, Mapping):
        values = [f"{name}={value}" for name, value in setting.value.items()]
    return " ".join(f"{option} {_quote(value)}" for value in values)


def rename_parameter(error: Exception, parameter: str) -> Exception:
    """Return an error of the package that names another parameter."""
    problem = getattr(error, "problem", None)
    if problem is not None:
        vars(error)["problem"] = problem._replace(parameter=parameter)
    return error


def _quote(value: object) -> str:
    return "tab" if value == "\t" else shlex.quote(str(value))


def _add_advice(text: str) -> str:
    """Return a message of typer as one line that says what to do."""
    line = _join_lines(text).replace("Value error, ", "")
    if "did you mean" in line.lower() or "possible option" in line.lower():
        return line
    return f"{line.rstrip('.')}. Add --help to see what is possible."


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _show_warnings_as_notes() -> None:
    """Show each warning once, in one line, without its place in the code."""
    from dsage._check import SharedRowsWarning  # noqa: PLC0415

    # Other categories address programmers.
    warnings.simplefilter("ignore")
    warnings.simplefilter("default", UserWarning)
    # A model without column names gets named columns; a note to the user says so once.
    warnings.filterwarnings("ignore", message="X has feature names")
    # The command gives this warning itself, with the name of the file.
    warnings.simplefilter("ignore", SharedRowsWarning)

    seen = set()

    def show_warning(warning: Warning | str, *_: Any, **__: Any) -> None:  # noqa: ANN401
        text = getattr(warning, "text", str(warning))
        worded = _join_lines(text if isinstance(text, str) else text.worded(word_setting))
        if worded not in seen:
            seen.add(worded)
            note(f"Warning: {worded}")

    warnings.showwarning = show_warning  # type: ignore[assignment]


# Notes and results


def note(text: str, *, quiet: bool = False) -> None:
    """Write something other than the result to stderr, unless `quiet` is true."""
    if not quiet:
        typer.echo(_visible(text), err=True)


def show(text: str) -> None:
    """Write a result to stdout; a closed pipe, as with ``head``, is not an error."""
    try:
        typer.echo(_visible(text))
    except BrokenPipeError:
        # Otherwise the flush when Python exits would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _visible(text: str) -> str:
    from dsage._check import visible  # noqa: PLC0415

    return visible(text)


def choose_progress(phases: Mapping[str, str], *, quiet: bool) -> bool | Callable[[Event], None]:
    """Return bars for a terminal, else a listener that notes each of the phases as it starts.

    It also notes what the estimation will cost.
    """
    from dsage.estimate.running.bar import SHORTEST, describe_cost  # noqa: PLC0415
    from dsage.result.events import CostExpected, PhaseStarted  # noqa: PLC0415

    def listen(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase in phases:
            note(phases[event.phase])
        if isinstance(event, CostExpected) and (event.outlook.seconds_left or 0.0) > SHORTEST:
            note(f"{describe_cost(event.outlook)}.")

    return not quiet and (sys.stderr.isatty() or listen)


# Files


class Output(NamedTuple):
    """A file to write: its option, path, content in words, and the suffixes it may have."""

    option: str
    path: Path | None
    content: str
    suffixes: tuple[str, ...] = ()


def check_outputs(outputs: Iterable[Output], inputs: Mapping[str, Path | None]) -> None:
    """Refuse files that cannot be written, or that would overwrite another or one of `inputs`."""
    used = {option: path for option, path in inputs.items() if path is not None}
    for option, path, _, suffixes in outputs:
        if path is None:
            continue
        _check_name(option, path, suffixes)
        for other, other_path in used.items():
            if _are_same(path, other_path):
                advice = "It would be overwritten: choose another name"
                raise _refusal(option, f"a different file from {other}", path, advice)
        _check_writable(option, path)
        if suffixes is PICTURES:
            # A missing matplotlib is reported before the work is done.
            import_module("dsage.plots")
        used[option] = path


def finish(text: str, outputs: Iterable[Output], writers: Writers, *, quiet: bool) -> None:
    """Write all files, show the result, and note which files were written and which failed.

    If a file cannot be written, the others are still written, and then the command fails.
    """
    lines, failures = [], []
    for option, path, content, _ in outputs:
        if path is None or option not in writers:
            continue
        try:
            writers[option](path)
        except Exception as error:
            failures.append(f"{option} {path} could not be written: {one_line(error)}")
        else:
            lines.append(f"{content} is in {path}.")
    show(text)
    for line in lines:
        note(line, quiet=quiet)
    if failures:
        note(f"Error: {' '.join(failures)}")
        raise typer.Exit(FAILED)


def save_figure(ax: Any, path: Path) -> None:  # noqa: ANN401
    """Write the figure of some axes, and close it."""
    from matplotlib import pyplot as plt  # noqa: PLC0415

    from dsage._files import write_bytes  # noqa: PLC0415

    stream = io.BytesIO()
    kind = path.suffix[1:].lower()
    ax.figure.savefig(stream, bbox_inches="tight", dpi=150, format=kind)
    plt.close(ax.figure)
    write_bytes(path, stream.getvalue())


def table_writers(frame: Any, *, is_raw: bool) -> Writers:  # noqa: ANN401
    """Return the writers of a table as CSV and JSON; `is_raw` leaves texts in CSV unchanged."""
    from dsage._files import write_bytes  # noqa: PLC0415
    from dsage.data.csv_text import to_csv  # noqa: PLC0415

    def write(path: Path, text: str) -> None:
        # A name may contain an unpaired surrogate, which UTF-8 cannot encode.
        write_bytes(path, text.encode("utf-8", errors="backslashreplace"))

    return {
        "--csv": lambda path: write(path, to_csv(frame, is_raw=is_raw)),
        "--json": lambda path: write(
            path, frame.to_json(orient="records", indent=1, force_ascii=False)
        ),
    }


def _refusal(
    option: str, condition: str, path: Path, advice: str, kind: type[Exception] = ValueError
) -> Exception:
    from dsage._check import refusal  # noqa: PLC0415

    return refusal(option, condition, str(path), advice, kind)


def _check_name(option: str, path: Path, suffixes: tuple[str, ...]) -> None:
    if path.is_dir():
        raise _refusal(option, "a file", path, "It is a folder: add a name", IsADirectoryError)
    if not path.parent.is_dir():
        advice = f"Create {str(path.parent)!r}"
        raise _refusal(option, "in a folder that exists", path, advice, FileNotFoundError)
    if suffixes and path.suffix.lower() not in suffixes:
        condition = f"a name that ends in {' or '.join(suffixes)}"
        advice = f"Call it {path.with_suffix(suffixes[0]).name!r}"
        raise _refusal(option, condition, path, advice)


def _are_same(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    return path.is_file() and other.is_file() and path.samefile(other)


def _check_writable(option: str, path: Path) -> None:
    """Try to create a file in the same folder: a full or read-only disk is then found early."""
    reason = "permission denied"
    is_writable = os.access(path, os.W_OK) if path.exists() else True
    # A pipe or a terminal is not in a folder that can be written to.
    if is_writable and (path.is_file() or not path.exists()):
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                return
        except OSError as error:
            is_writable, reason = False, error.strerror or str(error)
    if not is_writable:
        advice = f"Choose a place that you can write to ({reason})"
        raise _refusal(option, "a file that can be written", path, advice, PermissionError)
