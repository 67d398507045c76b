"""The `mrcfabric` command: finds the command that the words name, and runs it.

Owns the form of errors: an operator's mistake (`ConfigError`) is one line on standard error and exit code 2, whatever
the command; a running fabric's refusal, silence or failure is one line and exit code 1. The command's module does
everything else. Start-up time counts: command modules import slow modules inside their functions.
"""

import errno
import os
import sys
import warnings
from typing import TYPE_CHECKING, Annotated

from mrcfabric.errors import ConfigError, RefusedError, brief, one_line
from mrcfabric.naming import shown
from orchestrator.cli.first_process import stand_in_front
from orchestrator.cli.interrupts import follows_interrupt

if TYPE_CHECKING:
    import typer

EXIT_REFUSED = 1
EXIT_CONFIG = 2
EXIT_NOT_WRITTEN = 4
"""As of a run whose report cannot be written."""
EXIT_INTERRUPTED = 130


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        import typer

        from mrcfabric.cores import CORES

        typer.echo(f"mrcfabric {version('mrcfabric')}\ncores: {CORES.line}")
        raise typer.Exit


def build_app() -> "typer.Typer":
    """The whole command line; see `orchestrator.cli.command_tree`."""
    import typer  # slow imports belong where Ctrl-C is handled

    from orchestrator.cli.command_tree import CommandTree, new_app

    app = new_app(
        name="mrcfabric",
        cls=CommandTree,
        help="An emulated MRC fabric: NICs and switches as daemons that exchange real UDP.",
        no_args_is_help=True,
    )

    @app.callback()
    def mrcfabric(
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        pass

    return app


def _refusals() -> tuple[type[Exception], ...]:
    """The errors that a running fabric may answer; imported only when something is raised, to start fast."""
    from mrcfabric.control import NoAnswerError
    from orchestrator.process.launcher import ProcessFailedError

    return RefusedError, NoAnswerError, ProcessFailedError


def _open_standard_files() -> None:
    """Open /dev/null for each standard file that the caller closed (`>&-`), so that no socket gets its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - for the life of the process


def _replace_what_cannot_be_written() -> None:
    """Have signs that the encoding of standard output lacks come out as `?`, instead of ending the command."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def _output_is_lost() -> bool:
    """Whether standard output takes nothing, as on a full disk; then it takes everything from now on, to no end.

    Python tries to write what is left when it ends, and would print a second error.
    """
    try:
        print(file=sys.stdout, flush=True)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return True
    return False


def main() -> int:
    """Run the command line; returns the exit code for `sys.exit`."""
    _open_standard_files()
    _replace_what_cannot_be_written()
    return stand_in_front(_run)


def _run() -> int:
    try:
        build_app()()
    except ConfigError as error:
        print(f"mrcfabric: {error}", file=sys.stderr)
        return EXIT_CONFIG
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as done:
        if done.code == EXIT_INTERRUPTED:
            warnings.simplefilter("ignore", RuntimeWarning)  # of a coroutine that was made, and then not run
        return done.code if isinstance(done.code, int) else 1 if done.code else 0
    except _refusals() as error:
        lines = [brief(one_line(line)) for line in str(error).split("\n")]  # what a daemon said may have several
        print("mrcfabric: " + "\n".join(lines), file=sys.stderr)
        return EXIT_REFUSED
    except OSError as error:
        # A name on the command line, wherever it is first asked for: `Path.exists` raises this, and nothing else.
        if error.errno == errno.ENAMETOOLONG:
            print(f"mrcfabric: {shown(os.fsdecode(error.filename or ''))}: {error.strerror}", file=sys.stderr)
            return EXIT_CONFIG
        if not _output_is_lost():
            raise
        print(f"mrcfabric: standard output: {error.strerror}", file=sys.stderr)
        return EXIT_NOT_WRITTEN
    except Exception as error:
        if not follows_interrupt(error):
            raise
        # As when a second Ctrl-C comes while an event loop closes.
        print(f"mrcfabric: interrupted: {brief(one_line(str(error)))}", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0
