"""From checked arguments to compiled loops: what `softfloat.bits` and what stands on it may use.

Numba is imported with the first loop, not with this package.
"""

from softfloat.engine.arguments import (
    Codes,
    broadcast,
    check_codes,
    flattened,
    from_keys,
    has_nan,
    is_nan,
    is_signalling,
    keys,
    magnitudes,
    order,
    refuse_mask,
)
from softfloat.engine.decoding import decoded, widened
from softfloat.engine.draws import Draw, Work, bits_at, check_block, draw, poplar_state, refuse_random_bits
from softfloat.engine.elementwise import Job, drawn_more, fast_family, odd_float, pairs_work, run, way
from softfloat.engine.inlined import Inlined, drawing_of, inlined, integer_limits
from softfloat.engine.options import CONVERSIONS, FIXED, Call, Options, check_boolean, check_stream, uses_of
from softfloat.engine.parameters import (
    Numbers,
    available,
    check_reach,
    dots,
    is_unusual,
    loops,
    numbers,
    rule_for,
    way_of,
)
from softfloat.engine.problems import Problem
from softfloat.engine.programs import program
from softfloat.engine.quantization import (
    Places,
    PowerScales,
    Quantized,
    TableScales,
    four_over_six,
    largest_magnitude,
    quantized,
    serves_elements,
    serves_places,
    serves_scale,
)
from softfloat.engine.results import finished, flag_bytes, outputs
from softfloat.engine.threads import Progress, get_num_threads, set_num_threads, share
from softfloat.engine.transforms import serves_transform, transformed_runs
from softfloat.engine.ways import choose

__all__ = [
    "CONVERSIONS",
    "FIXED",
    "Call",
    "Codes",
    "Draw",
    "Inlined",
    "Job",
    "Numbers",
    "Options",
    "Places",
    "PowerScales",
    "Problem",
    "Progress",
    "Quantized",
    "TableScales",
    "Work",
    "available",
    "bits_at",
    "broadcast",
    "check_block",
    "check_boolean",
    "check_codes",
    "check_reach",
    "check_stream",
    "choose",
    "decoded",
    "dots",
    "draw",
    "drawing_of",
    "drawn_more",
    "fast_family",
    "finished",
    "flag_bytes",
    "flattened",
    "four_over_six",
    "from_keys",
    "get_num_threads",
    "has_nan",
    "inlined",
    "integer_limits",
    "is_nan",
    "is_signalling",
    "is_unusual",
    "keys",
    "largest_magnitude",
    "loops",
    "magnitudes",
    "numbers",
    "odd_float",
    "order",
    "outputs",
    "pairs_work",
    "poplar_state",
    "program",
    "quantized",
    "refuse_mask",
    "refuse_random_bits",
    "rule_for",
    "run",
    "serves_elements",
    "serves_places",
    "serves_scale",
    "serves_transform",
    "set_num_threads",
    "share",
    "transformed_runs",
    "uses_of",
    "way",
    "way_of",
    "widened",
]
