"""Compiled code on disk: a checked file for each function and signature, in a folder for each state of the sources.

A cache saves time and does nothing else. Whatever is wrong with an entry, it is dropped; whatever is wrong with the
folder, one line says so; the call compiles and goes on. Files appear complete, under names that say all that they
depend on, so any number of processes may share a folder.
"""

import contextlib
import hashlib
import os
import pickle
import shutil
import sys
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import llvmlite
import numba
from numba.core import event
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

FOLDERS_KEPT = 10
"""States of the sources, versions of Python and Numba, whose code is kept; the least recently used go first."""

CHECKSUM_BYTES = hashlib.sha256().digest_size

LOOP = "softfloat:loop"
"""The kind of `numba.core.event` that begins where a process takes a loop for the first time; its data say whether that was `kept`, or is
compiled until it ends."""


def begin_loop(kept: bool) -> None:
    """Tell whoever listens."""
    event.start_event(LOOP, data={"kept": kept})


def end_loop() -> None:
    """The same, once it is compiled."""
    event.end_event(LOOP)


def _notebook_log() -> Any:
    """The log of the Jupyter kernel that this process is; None if it is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(getattr(shell, "kernel", None), "log", None)


def tell(text: str) -> None:
    """A line on standard error, if there is one that takes it; in notebooks, whose cells would keep it, in the kernel's log."""
    log = _notebook_log()
    if log is not None:
        log.warning(text)
    elif sys.stderr is not None:  # print would take standard output
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr)


tell_once = cache(tell)


def root() -> Path:
    """The folder of all compiled code: in NUMBA_CACHE_DIR, or where the platform keeps a user's caches.

    Raises RuntimeError if there is no such place: a user without a home.
    """
    named = getattr(numba.config, "CACHE_DIR", "")
    if named:
        return Path(named).absolute() / "numba-softfloat"
    variable, default = {
        "win32": ("LOCALAPPDATA", "AppData/Local"),
        "darwin": ("", "Library/Caches"),
    }.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    given = Path(os.environ.get(variable, ""))
    return (given if given.is_absolute() else Path.home() / default) / "numba-softfloat"


def folder(digest: int) -> Path:
    """The folder of what this Python and this Numba compile from sources with this digest."""
    version = sys.modules[__name__.partition(".")[0]].__version__  # kernels import nothing of the package
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return root() / f"compiled-{version}-{digest:016x}-{python}-numba-{numba.__version__}"


@cache
def _use(place: Path) -> None:
    """Note that a folder is in use, for `_drop_unused`."""
    with contextlib.suppress(OSError):
        os.utime(place)


def _drop_unused(parent: Path) -> None:
    """Remove the folders that were not used for longest."""
    found = []
    for place in parent.glob("compiled-*"):
        with contextlib.suppress(OSError):  # another process removed it
            found.append((place.stat().st_mtime, place))
    for _, place in sorted(found, reverse=True)[FOLDERS_KEPT:]:
        shutil.rmtree(place, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    """A file that appears when it is complete."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        _drop_unused(path.parent.parent)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def read(path: Path) -> bytes | None:
    """What a file of compiled code holds; None if there is none, or it is damaged, and then removed."""
    try:
        _use(path.parent)
        data = path.read_bytes()
    except OSError:
        return None
    content = data[CHECKSUM_BYTES:]
    if hashlib.sha256(content).digest() == data[:CHECKSUM_BYTES]:
        return content
    remove(path)
    return None


def remove(path: Path) -> None:
    """A file that cannot be used."""
    with contextlib.suppress(OSError):
        path.unlink()


def write(path: Path, content: bytes) -> bool:
    """Whether the file is there now; if not, one line says why, once."""
    try:
        _write(path, hashlib.sha256(content).digest() + content)
    except OSError as error:
        tell_once_why(error)
        return False
    return True


def tell_once_why(error: Exception) -> None:
    """Why compiled code is not kept."""
    reason = getattr(error, "strerror", None) or error
    tell_once(f"softfloat: cannot keep compiled code ({reason}); NUMBA_CACHE_DIR can name a folder for it")


class CompileCache(_Cache):
    """What Numba's dispatcher asks for compiled code.

    Numba's own class keeps an index beside the data, in the package's folder if it can. Two processes that add to an index
    at once lose entries, a damaged one ends every later call, and files among the sources outlive the package.

    Attributes
    ----------
    kept : bool
        Whether the code compiled last was written.
    """

    def __init__(self, function: Callable, digest: int) -> None:
        self._function, self._digest = function, digest
        self._enabled, self.kept = True, False

    @property
    def cache_path(self) -> str | None:
        """The folder; None if there is no place for it."""
        with contextlib.suppress(RuntimeError):
            return str(folder(self._digest))
        return None

    def enable(self) -> None:
        """Read and write files."""
        self._enabled = True

    def disable(self) -> None:
        """Compile always."""
        self._enabled = False

    def flush(self) -> None:
        """Forget what was compiled of this function."""
        with contextlib.suppress(OSError, RuntimeError):
            for path in folder(self._digest).glob(f"{self._function.__name__}-*"):
                path.unlink(missing_ok=True)

    def key(self, signature: object, codegen: Any) -> str:
        """A digest of types, processor, bytecode, constants, and of what the function closes over."""
        code = self._function.__code__
        constants = [x for x in code.co_consts if not isinstance(x, CodeType)]
        closed_over = dumps(tuple(cell.cell_contents for cell in self._function.__closure__ or ()))
        names = self._function.__module__, self._function.__qualname__, llvmlite.__version__
        parts = names, str(signature), codegen.magic_tuple(), constants, code.co_names, code.co_code, closed_over
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _path(self, signature: object, codegen: Any) -> Path:
        return folder(self._digest) / f"{self._function.__name__}-{self.key(signature, codegen)[:40]}.bin"

    def load_overload(self, sig: object, target_context: Any) -> Any:
        """The code for a signature; None, said on standard error once, where it is to be compiled."""
        found = self._loaded(sig, target_context)
        begin_loop(kept=found is not None)
        if found is None:
            tell_once("softfloat: compiling loops that are not in the cache yet; this takes some seconds, once")
        return found

    def _loaded(self, sig: object, target_context: Any) -> Any:
        target_context.refresh()
        if not self._enabled:
            return None
        try:
            path = self._path(sig, target_context.codegen())
        except RuntimeError:
            return None
        content = read(path)
        try:
            return None if content is None else CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # unpickling and linking may raise anything
            remove(path)
            return None

    def save_overload(self, sig: object, data: Any) -> None:
        """Write the code for a signature."""
        end_loop()
        self.kept = False
        if not self._enabled or data.lifted or data.library.has_dynamic_globals:
            return
        try:
            self.kept = write(self._path(sig, data.codegen), dumps(data._reduce()))
        except RuntimeError as error:
            tell_once_why(error)
