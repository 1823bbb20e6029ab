"""What goes wrong, in one line; what is worth knowing, on stderr."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from dsage.cli.shell import in_shell

FAILED = 2
INTERRUPTED = 130

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class OneLineGroup(typer.core.TyperGroup):
    """Commands whose wrong options are told in one line, with what may have been meant."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        """Run a command and leave with its exit code."""
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
            # Without text it has shown the help already.
            if text:
                typer.echo(f"Error: {_advised(text)}", err=True)
            sys.exit(FAILED if text else 0)
        sys.exit(code if isinstance(code, int) else 0)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that tells its errors in one line, unless it is given ``--debug``."""

    @functools.wraps(command)
    def run(*args: Any, debug: bool = False, **options: Any) -> None:  # noqa: ANN401
        with warnings.catch_warnings():
            _word_warnings()
            try:
                command(*args, **options)
            except KeyboardInterrupt:
                note("Interrupted before anything was known.")
                raise typer.Exit(INTERRUPTED) from None
            except (typer.Exit, typer.Abort):
                raise
            except Exception as error:
                if debug:
                    raise
                typer.echo(f"Error: {one_line(error)}", err=True)
                raise typer.Exit(FAILED) from None

    # With the annotations as objects, which typer reads the options from.
    signature = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    last = inspect.Parameter("debug", kind, default=False, annotation=Debug)
    shown = signature.replace(parameters=[*signature.parameters.values(), last])
    vars(run)["__signature__"] = shown
    run.__annotations__ = {**command.__annotations__, "debug": Debug}
    return run


def note(text: str) -> None:
    """Tell the user something beside the result."""
    typer.echo(text, err=True)


def show(text: str) -> None:
    """Show a result; a reader that went away, as head does, is no error."""
    try:
        typer.echo(text)
    except BrokenPipeError:
        # What Python itself flushes at its end would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_line(error: BaseException) -> str:
    r"""Return an error in one line, with its notes, in the words of the command line.

    Examples
    --------
    >>> one_line(ValueError("a must be\n  b"))
    'a must be b'
    >>> one_line(ValueError("n_jobs must be a number other than 0; got 0."))
    '--jobs must be a number other than 0; got 0.'
    >>> one_line(KeyError("a"))
    "KeyError: 'a'. Run the same with --debug to see where."
    """
    text = " ".join([str(error), *getattr(error, "__notes__", ())])
    text = in_shell(" ".join(text.split())) or "no reason was given"
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
        return text
    return f"{type(error).__name__}: {text.rstrip('.')}. Run the same with --debug to see where."


def _advised(text: str) -> str:
    """Return a message of typer as one line that says what to do."""
    line = " ".join(text.split()).replace("Value error, ", "")
    if "did you mean" in line.lower() or "possible option" in line.lower():
        return line
    return f"{line.rstrip('.')}. Add --help to see what is possible."


def _word_warnings() -> None:
    """Show warnings as one line each, without the place in the code."""
    # What libraries tell programmers is not for users.
    warnings.simplefilter("ignore")
    warnings.simplefilter("default", UserWarning)
    # A model without column names is given columns with names, and the user is told once which.
    warnings.filterwarnings("ignore", message="X has feature names")

    def show(text: Warning | str, *_: Any, **__: Any) -> None:  # noqa: ANN401
        note(f"Warning: {in_shell(' '.join(str(text).split()))}")

    warnings.showwarning = show  # type: ignore[assignment]
