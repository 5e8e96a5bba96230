"""Running the example programs within a test."""

from __future__ import annotations

import contextlib
import io
import json
from types import ModuleType
from typing import Any

SHORT = ("--limit", "64", "--epochs", "1")


class Run:
    """What a program printed, and its exit status."""

    def __init__(self, program: ModuleType, *arguments: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.status = program.main(list(arguments))
        self.out, self.err = out.getvalue(), err.getvalue()

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    def assert_error(self, program: ModuleType, *words: str) -> None:
        assert self.status == 2
        assert self.out == ""
        *before, last = self.err.splitlines()
        assert all("warming up" in line or "compiling" in line for line in before)
        assert last.startswith(f"{program.__name__.rpartition('.')[2]}: error: ")
        for word in words:
            assert word in last


def untimed(document: Any) -> Any:
    """A document without what differs from run to run."""
    for epoch in document["epochs"]:
        epoch["seconds"] = epoch["images_per_second"] = None
    return document
