"""Commands run in this process, and a guard against those that never end."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import re
import sys
from collections.abc import Iterator

import pytest

from softfloat.commands import main

HANG = 1800  # seconds: no measure of speed, only far beyond any machine's


@contextlib.contextmanager
def not_hanging() -> Iterator[None]:
    """End the process, with a traceback, if the block hangs."""
    faulthandler.dump_traceback_later(HANG, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def without_compiling(text: str) -> str:
    """Standard error but for the lines on compilations that took long, and on how far a long command has come."""
    passing = "softfloat: compiling ", "softfloat reproduce: "
    return "".join(x for x in text.splitlines(keepends=True) if not x.startswith(passing))


class Run:
    """What a command printed, but for lines on compilations, and its exit status."""

    def __init__(self, *arguments: str, stdin: bytes = b"") -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            self.status = main(list(arguments))
        self.out, self.err = out.getvalue(), without_compiling(err.getvalue())

    @property
    def document(self) -> dict:
        return json.loads(self.out)

    def assert_error(self, *words: str) -> None:
        assert self.status == 2
        assert self.out == ""
        assert re.fullmatch(r"softfloat: error: [^\n]+\n", self.err), self.err
        for word in words:
            assert word in self.err
