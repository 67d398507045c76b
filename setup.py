"""What pyproject.toml cannot say: a wheel carries compiled cores where a C compiler is, and then fits one platform."""

import functools
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))
from tools.cores.compile import CannotCompileError, check_tools, compile_into


@functools.cache
def _can_compile() -> bool:
    try:
        check_tools()
    except CannotCompileError:
        return False
    return True


class BuildWithCores(build_py):
    """Copies the sources and compiles the cores beside them; an editable installation has its own."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            compile_into(Path(self.build_lib, "mrcfabric"))


class Fabric(Distribution):
    """Our distribution: pure Python exactly if nothing is compiled."""

    def has_ext_modules(self) -> bool:
        return _can_compile()


setup(cmdclass={"build_py": BuildWithCores}, distclass=Fabric)
