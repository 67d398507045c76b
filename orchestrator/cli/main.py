"""The `mrcfabric` command: finds the command that the words name, and runs it.

Owns the form of errors: an operator's mistake (`ConfigError`) is one line on standard error and exit code 2, whatever
the command; a running fabric's refusal, silence or failure is one line and exit code 1. What standard output takes is
`standard_files`'s; the command's module does everything else. Start-up time counts: command modules import slow modules
inside their functions.
"""

import errno
import os
import sys
import warnings
from typing import TYPE_CHECKING, Annotated

from mrcfabric.errors import ConfigError, RefusedError, brief, one_line
from mrcfabric.naming import shown
from orchestrator.cli import standard_files
from orchestrator.cli.first_process import stand_in_front
from orchestrator.cli.interrupts import follows_interrupt

if TYPE_CHECKING:
    import typer

EXIT_REFUSED = 1
EXIT_CONFIG = 2
EXIT_NOT_WRITTEN = 4
"""As of a run whose report cannot be written; here standard output."""
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


def main() -> int:
    """Run the command line; returns the exit code for `sys.exit`."""
    standard_files.open_all()
    return stand_in_front(_told)


def _told() -> int:
    """Run, and say what could not be said; the exit code."""
    code = _run()
    lost = standard_files.output_lost()
    if lost is None:
        return code
    print(f"mrcfabric: standard output: {lost.strerror}", file=sys.stderr)
    return code or EXIT_NOT_WRITTEN


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
        if error.filename is not None or standard_files.output_lost() is None:
            raise
        return EXIT_NOT_WRITTEN
    except Exception as error:
        if not follows_interrupt(error):
            raise
        # As when a second Ctrl-C comes while an event loop closes.
        print(f"mrcfabric: interrupted: {brief(one_line(str(error)))}", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0
