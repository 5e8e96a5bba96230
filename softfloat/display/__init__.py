"""Numbers, formats and arrays as text, tables and figures. `softfloat.experiments.figures` draws experiments."""

from softfloat.display.blocks import BlockInspection, inspect_block
from softfloat.display.figures import exponent_histogram, function_error, number_line, spacing, staircase
from softfloat.display.graphs import coloured_graph
from softfloat.display.inspection import (
    Inspection,
    Neighbour,
    code_from_bits,
    inspect_code,
    inspect_number,
    render_inspection,
)
from softfloat.display.measures import (
    ExponentShares,
    FunctionError,
    Step,
    count_between,
    exponent_shares,
    function_errors,
    spacing_steps,
    steps,
    values_between,
)
from softfloat.display.numbers import exact_decimal, parse_value, power_of_two
from softfloat.display.orders import SummationOrder, summation_order
from softfloat.display.saving import check_plot_folder, check_plot_path, save
from softfloat.display.tables import ValueRow, ValueTable, value_table
from softfloat.display.widgets import explorer

__all__ = [
    "BlockInspection",
    "ExponentShares",
    "FunctionError",
    "Inspection",
    "Neighbour",
    "Step",
    "SummationOrder",
    "ValueRow",
    "ValueTable",
    "check_plot_folder",
    "check_plot_path",
    "code_from_bits",
    "coloured_graph",
    "count_between",
    "exact_decimal",
    "explorer",
    "exponent_histogram",
    "exponent_shares",
    "function_error",
    "function_errors",
    "inspect_block",
    "inspect_code",
    "inspect_number",
    "number_line",
    "parse_value",
    "power_of_two",
    "render_inspection",
    "save",
    "spacing",
    "spacing_steps",
    "staircase",
    "steps",
    "summation_order",
    "value_table",
    "values_between",
]
