"""What codes stand for, as float64."""

from __future__ import annotations

import numpy as np

from softfloat.engine import arguments, parameters, threads
from softfloat.engine.arguments import Codes
from softfloat.formats import Format
from softfloat.kernels.spec import CARRIER64, Rule

PLAIN = Rule()


def decoded(codes: Codes, fmt: Format, rule: Rule = PLAIN) -> Codes:
    """The values of codes, of their shape; `rule` says whether subnormals count as zeros."""
    values = np.empty(codes.size, np.float64)
    numbers = parameters.numbers(fmt.spec, fmt.spec, rule, CARRIER64)
    flat = arguments.flattened(codes)

    def work(start: int, stop: int) -> int:
        parameters.loops().decoding()(flat[start:stop], values[start:stop], *numbers)
        return 0

    threads.share(codes.size, work)
    return values.reshape(codes.shape)
