"""Notebooks run, draw, say what is true, and are stored without output."""

import ast
import base64
import importlib.util
import inspect
import io
import json
import os
import re
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from softfloat import display
from softfloat.experiments import figures

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [
    "01_formats",
    "02_swamping",
    "03_stochastic_rounding",
    "04_overflow",
    "05_accumulators",
    "06_loss_scaling",
    "07_network_gradients",
    "08_training_methods",
    "09_recipes",
    "10_blocks_and_scales",
    "11_beyond_one_process",
    "12_refinement",
    "13_stagnation",
    "14_slices",
    "15_double_rounding",
]
TRAINING = {
    "07_network_gradients": "comparisons",
    "08_training_methods": "comparisons",
    "09_recipes": "conversions",
    "10_blocks_and_scales": "scaled",
}
"""Those that train networks, and need the extra `examples`; and the module that does it."""
DOORS = {name: ("softfloat.examples", module) for name, module in TRAINING.items()} | {
    "11_beyond_one_process": ("softfloat", "dask"),
    "12_refinement": ("softfloat", "linalg"),
    "13_stagnation": ("softfloat.experiments", "numerics"),
    "14_slices": ("softfloat.experiments", "numerics"),
    "15_double_rounding": ("softfloat", "bits"),
}
"""Where a notebook's work comes from, if not from the experiments."""
NEEDED = dict.fromkeys(TRAINING, ("torch", "sklearn")) | {"11_beyond_one_process": ("dask", "distributed")}
HANG = 900  # seconds for a cell, the compilation of its loops on a busy machine included
STRIP = (
    "jupyter nbconvert --clear-output --inplace --ClearMetadataPreprocessor.enabled=True "
    """--ClearMetadataPreprocessor.preserve_nb_metadata_mask='{"kernelspec", ("language_info", "name")}' """
    "notebooks/*.ipynb"
)
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
STRICT = f"""import sys
import tempfile
import warnings

assert sys.executable == {sys.executable!r}
warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="ipykernel")"""
FIGURES = {
    name
    for module in (display, figures)
    for name in module.__all__
    if str(getattr(inspect.unwrap(getattr(module, name)), "__annotations__", {}).get("return")) == "Figure"
}

CLAIMS = {
    "01_formats": {
        "fifteen numbers": "display.count_between('float4_e2m1fn', -6, 6) == 15",
        "Of its 16 codes two mean zero": "[r.value for r in display.value_table('float4_e2m1fn').rows].count(0) == 2",
        "eight numbers from each power of two to the next, up to 448": (
            "display.count_between('float8_e4m3fn', 1, 2) == 9 and softfloat.float8_e4m3fn.max == 448"
        ),
        "or four numbers, up to 57344": (
            "display.count_between('float8_e5m2', 1, 2) == 5 and softfloat.float8_e5m2.max == 57344"
        ),
        "2<sup>-10</sup> in `float16` and 2<sup>-7</sup> in `bfloat16`": (
            "(softfloat.float16.eps, softfloat.bfloat16.eps) == (2**-10, 2**-7)"
        ),
        "3.4·10<sup>38</sup>": "f'{softfloat.bfloat16.max:.1e}' == '3.4e+38'",
        "9.2·10<sup>-41</sup>": "f'{softfloat.bfloat16.smallest_subnormal:.1e}' == '9.2e-41'",
        "off by 0.4 of the spacing": "display.inspect_number('0.1', 'float16').error_ulps == -0.4",
        "10<sup>-8</sup>, a usual epsilon of the Adam optimiser, is zero in half precision": (
            "(case.number, case.value) == (np.float32(1e-8), 0)"
        ),
        "between `float16` and `bfloat16` in range and in spacing": (
            "softfloat.float16.max < mine.max < softfloat.bfloat16.max"
            " and softfloat.float16.eps < mine.eps < softfloat.bfloat16.eps"
        ),
    },
    "02_swamping": {
        "10 000 times 0.0001 is 0.25": "float(np.sum(x)) == 0.25 == float(nearest.final[0])",
        "for 2181 additions and then never again": (
            "nearest.stalled_after == 2181 and (np.diff(nearest.trajectory[:2182, 0]) > 0).all()"
            " and set(nearest.trajectory[2181:, 0]) == {0.25}"
        ),
        "At 0.25 the spacing becomes 2<sup>-12</sup>": "display.inspect_number('0.25', 'float16').above.spacing == 2**-12",
        "2<sup>-13</sup> ≈ 0.000122": "f'{2**-13:.6f}' == '0.000122'",
        "it stalls where `float16` does": "sums[1].stalled_after == nearest.stalled_after",
        "8 bits, and stalls after 273 additions": "softfloat.bfloat16.p == 8 and sums[2].stalled_after == 273",
        "too large by 0.00005": "f'{float(sums[0].final[0]) - 1:.5f}' == '0.00005'",
        "once the spacing exceeds the increment, at 0.125": (
            "float(experiments.running_sum('float16', rounding='toward_zero').final[0]) == 0.125"
        ),
        "Rounding to odd stalls one number later": (
            "float(experiments.running_sum('float16', rounding='to_odd').final[0]) == 0.125 + 2**-13"
        ),
        "the sum becomes 55.25": (
            "float(experiments.running_sum('float16', rounding='toward_positive').final[0]) == 55.25"
        ),
        "Kahan's compensated sum": "float(kahan) == 1",
    },
    "03_stochastic_rounding": {
        "a quarter of the results are up": "abs(np.mean(rounded.values > 1) - 0.25) < 0.01",
        "1.000166·10<sup>-4</sup>": "f'{walks.increment * 1e4:.6f}' == '1.000166'",
        "in 100 runs": "walks.runs == 100",
        "a standard deviation of 0.0154": "f'{spread.theoretical_std:.4f}' == '0.0154'",
        "off by 2% in half precision, and by 6% in `bfloat16`": (
            "{row.format: f'{row.error:.0%}' for row in rows if row.length == 2**16 and row.rounding == 'stochastic'}"
            " == {'float16': '2%', 'bfloat16': '6%'}"
        ),
        "where the bound has reached 1": "rows[-1].bound == 1",
        "For short sums rounding to nearest is the better": (
            "all(a.error < b.error for a, b in zip(rows, rows[13:]) if a.length <= 256 and a.rounding < b.rounding)"
        ),
        "the sum stalls at 0.25 again": "(few_bits[0].mean, few_bits[0].std) == (0.25, 0)",
        "With two bits it stalls at 0.5": "(few_bits[1].mean, few_bits[1].std) == (0.5, 0)",
        "that makes 7": "np.ceil(np.log2(10_000) / 2) == 7",
        "from 6 bits on": "(bias[5:] < noise).all() and (bias[:5] > noise).all()",
        "With 13 bits there is no bias": "abs(bias[12]) < 1e-12 < abs(bias[11])",
    },
    "04_overflow": {
        "65504 is the largest `float16`": "softfloat.float16.max == 65504",
        "From 65520 on, halfway": (
            "[c.value for c in experiments.conversion_cases('float16', ['infinity'], [np.nextafter(65520, 0), 65520])]"
            " == [65504, np.inf]"
        ),
        "Rounding downwards, towards zero and to odd, no finite positive number does": (
            "all(np.isfinite(step.value) for mode in ('toward_negative', 'toward_zero', 'to_odd')"
            " for step in display.steps('float16', 65380, 1e300, mode))"
        ),
        "the tie, 464, goes to it": (
            "experiments.conversion_cases('float8_e4m3fn', ['infinity'], [464])[0].value == 448"
            " == softfloat.float8_e4m3fn.max"
        ),
        "is 600.03": "f'{exact:.2f}' == '600.03'",
        "a length of 255.875": "lengths['saturate'] == 255.875",
        "Infinity and NaN reach the result": "lengths['infinity'] == np.inf and np.isnan(lengths['nan'])",
        "the variance 10": "variance.exact == variance.two_pass == 10 and np.isnan(variance.one_pass)",
    },
    "05_accumulators": {
        "the sum stalls at 2048": "results[\"fma('float16')\"] == results[\"mul_add('float16')\"] == 2048",
        "the last rounding alone has an error of up to 0.05%": "f'{softfloat.float16.eps / 2:.2%}' == '0.05%'",
        "half partials lose 23%": "round(error[\"amp('float16')\", 2**16], 2) == 0.23",
        "about two millionths": "1.5e-6 < error[\"amp('float32')\", 2**16] < 2.5e-6",
        "least at c = √n": "best == 256 == 65536**0.5",
        "with 2<sup>-24</sup> V100 loses them all": (
            "tail(tensor_core('V100'), -24) == 0 and tail(tensor_core('A100'), -24) == tail(tensor_core('H100'), -24) == 7"
        ),
        "with 2<sup>-25</sup> A100 too": (
            "tail(tensor_core('A100'), -25) == 0 and tail(tensor_core('H100'), -25) == 3"
        ),
        "loses them in both cases": "tail(fma('float32'), -24) == tail(fma('float32'), -25) == 0",
    },
    "06_loss_scaling": {
        "more than nine in ten": "plain.share('underflow') > 0.9",
        "the scale could be 2<sup>10</sup> times larger": "abs(reference.weights).max() * 2.0**26 < 65504",
        "At the beginning they are larger": (
            "abs(experiments.train(steps=1).weights).max() > 64 * abs(reference.weights).max()"
        ),
        "wrong by more than one half": "experiments.underflow_threshold('float16') == 0.5 / 2**24",
        "the loss never settles": "runs[0].losses[100:].min() > 5 * reference.loss",
        "From 2<sup>10</sup> to 2<sup>18</sup> half precision ends with the loss of float64": (
            "[run.scales[0] for run in runs[5:10]] == [2.0**k for k in range(10, 20, 2)]"
            " and all(abs(run.loss / reference.loss - 1) < 0.01 for run in runs[5:10])"
        ),
        "From 2<sup>20</sup> on every step overflows, and nothing is learnt at all": (
            "all(run.skipped == 300 and run.loss == reference.losses[0] for run in runs[10:])"
        ),
        "it needs no scale": "abs(others['bfloat16'][0].loss / reference.loss - 1) < 0.01",
        "it learns nearly as well, and nothing without": (
            "others['float8_e5m2'][1].loss < 1.2 * reference.loss and others['float8_e5m2'][0].loss == reference.losses[0]"
        ),
        "six steps are lost": "dynamic.skipped == 6",
        "no step is ever skipped, the scale stays": (
            "saturated['values'].skipped == 0 and set(saturated['values'].scales) == {2.0**28}"
        ),
        "more than five times as high": "saturated['values'].loss > 5 * reference.loss",
        "with it the same rule works": "saturated['flags'].loss < 1.05 * reference.loss",
    },
    "07_network_gradients": {
        "the limits are ten powers of two apart": "search.scale == 2.0**20 and error[10] < 0.005",
        "on 1500 images of digits": "len(net.images) == 1500",
        "all that is in half precision is computed here": ("half != single and abs(half / single - 1) < 0.001"),
        "its smallest number is 2<sup>-24</sup>": "found.smallest == 2**-24",
        "Two in five do": "0.35 < found.below_half < 0.45",
        "nearly all of these are gradients of activations": (
            "sum(part.below_half * part.nonzero for name, part in found.parts.items() if '.' in name)"
            " < 1e-4 * found.below_half * found.nonzero"
        ),
        "At 2<sup>10</sup> less than half a percent becomes zero": "found.shares(2**10).share('underflow') < 0.005",
        "At 2<sup>20</sup> all but one percent are normal numbers": "found.shares(2**20).share('normal') > 0.99",
        "With the first weights hardly any gradient would be lost": "lost[0] < 0.002",
        "after five epochs less than a fifth": "lost[0] < lost[5] < 0.2 < lost[10]",
        "off by more than a tenth of its length": "error[0] > 0.1",
        "With 2<sup>10</sup> it is off by less than half a percent": "error[10] < 0.005",
        "from 2<sup>15</sup> on by less than one in a thousand, which is the precision of half": (
            "max(error[15], error[20]) < 0.001 and 0.0009 < torch.finfo(torch.float16).eps < 0.001"
        ),
        "raise the scale until one is raised": (
            "search.trap.backward and search.trap.module.endswith('dense') and 2 * search.scale in search.tried"
        ),
        "The scale starts at 2<sup>24</sup>": "{run.scales[0] for run in runs} == {2.0**24}",
        "seven steps are skipped, and the scale settles at 2<sup>17</sup>": (
            "sum(nan.skipped) == 7 and nan.scales[-1] == 2.0**17"
        ),
        "lower than for the mean over all images": "nan.scales[-1] < search.scale",
        "never skips a step": "not any(values.skipped) and set(values.scales) == {2.0**24}",
        "more than half of all gradients are clipped": (
            "sum(values.saturated) > 0.5 * 60 * sum(p.numel() for p in net.model.parameters())"
        ),
        "hardly anything is learnt": "values.loss > 1.5 > 5 * nan.loss",
        "takes the same steps as with NaN": (
            "(flags.scales, flags.skipped, flags.losses, flags.loss) == (nan.scales, nan.skipped, nan.losses, nan.loss)"
        ),
        "the updates are the same, bit for bit": "same and optimiser.param_groups[0]['lr'] == 0.05 / 1024",
        "Adam's usual epsilon is zero": (
            "[(f.name, f.value, f.becomes) for f in findings if f.dtype == torch.float16][0] == ('eps', 1e-8, 0)"
        ),
        "the decay 0.999 is 1": (
            "[(f.name, f.value, f.becomes) for f in findings if f.dtype == torch.bfloat16] == [('beta2', 0.999, 1)]"
        ),
        "the learning rate 0.05 is no normal number": (
            "findings[-1].name == 'lr' and findings[-1].value == 0.05 / search.scale < 2**-14"
        ),
    },
    "08_training_methods": {
        "have learnt for two epochs to tell digits apart": "results[0].losses[0] == single.losses[0] < 0.5",
        "Of the first updates nine in ten are less than half of the spacing": "lost.mean() > 0.9",
        "Four epochs": "len(single.losses) == 5",
        "less than a third of the parameters have moved": "nearest.moved < 1 / 3",
        "the loss is more than 5% above that of `float32`": "nearest.loss > 1.05 * single.loss",
        "More than four in five have moved": "stochastic.moved > 0.8",
        "the loss is that of `float32`, within a fifth of a percent": (
            "abs(stochastic.loss / single.loss - 1) < 0.002"
        ),
        "So it is with Method 2": "abs(mixed.loss / single.loss - 1) < 0.002",
        "in half precision after every 16 products": "'16' in amp('half').describe()",
        "In this network that makes no difference": "abs(shorter.losses[2] / stochastic.losses[2] - 1) < 0.002",
        "its longest sums, of 2048 products": "net.model.dense.in_features == 2048 == 32 * 8 * 8",
        "Up to a thousand inputs half partials are off by little more than one in a thousand": (
            "max(one.error for one in sums if one.length <= 1024) < 0.0012"
        ),
        "and lose 14%": "round(error[2**16, 'half', False], 2) == 0.14",
        "Stochastic partials lose less than 1%": "error[2**16, 'half', True] < 0.01",
        "nearly as many additions change nothing": (
            "0.8 * swamped[2**16, 'half', False] < swamped[2**16, 'half', True] < swamped[2**16, 'half', False]"
        ),
        "Float partials are off by two millionths": "1.5e-6 < error[2**16, 'float', False] < 2.5e-6",
        "they are equal to the last bit": "spread[ON, True] == 0",
        "They are as well with random numbers in the updates alone": "spread[ONLY, True] == 0",
        "more than half of the parameters differ": "spread[ON, False] > lost.size / 2",
    },
    "09_recipes": {
        "Three nodes convert by their types": (
            "[x.rule.name for x in small.decisions if x.converts] == ['ALLOWED'] * 3 and len(small.decisions) == 5"
        ),
        "One is kept by a name": "small['out'].rule.name == 'NON_CONVERTIBLE'",
        "The sum is *strictly conditional*": "(small['add'].rule.name, small['add'].converts) == ('STRICT_CONDITIONAL', False)",
        "three into the group and one out of it": (
            "[x.to for x in small.casts] == ['bfloat16'] * 3 + ['float32'] and len(small.groups) == 1"
        ),
        "Full converts nearly all": "results['full'].converted > 0.8 * results['full'].nodes",
        "the loss stays, and so does the sum that is the gradient of a bias": (
            "{x.node.op_type for x in results['full'].colouring.decisions if x.rule.name == 'BLOCKED'}"
            " == {'aten.nll_loss_forward', 'aten.nll_loss_backward', 'aten.sum'}"
        ),
        "Basic converts products and convolutions alone": (
            "{x.node.op_type for x in results['basic'].colouring.decisions if x.converts}"
            " == {'aten.convolution', 'aten.convolution_backward', 'aten.addmm', 'aten.mm'}"
        ),
        "twice as many as with Full": "2 <= results['basic'].casts / results['full'].casts < 2.2",
        "Basic, which converts less than a fifth of the operations, needs the most casts": (
            "block['basic'].converted < block['basic'].nodes / 5"
            " and block['basic'].casts == max(one.casts for one in block.values())"
        ),
        "four times as many operations or more, with little more than half the casts": (
            "block['full'].converted >= 4 * block['basic'].converted"
            " and 0.5 < block['full'].casts / block['basic'].casts < 0.55"
        ),
        "all else in `bfloat16` adds less than half of it": "block['everything'].error < 1.5 * block['basic'].error",
        "makes their error more than half as large again": (
            "block['everything'].gradient_error > 1.5 * block['basic'].gradient_error"
        ),
        "They are on the conditional list, and convert because the operations beside them do": (
            "sum(x.converts and x.rule.name == 'CONDITIONAL' for x in full.decisions) > len(full.converted) / 2"
        ),
    },
    "10_blocks_and_scales": {
        "up to 1.5 all three agree": "(four.errors[:, four.places <= 1.5] == four.errors[0, four.places <= 1.5]).all()",
        "from 1.75 on what is larger than the largest element saturates": (
            "four.saturated[0][four.places > 1.75].min() > 0 == four.saturated[0][four.places < 1.75].max()"
        ),
        "`even` changes over at 1.75": (
            "(four.errors[1] == np.where(four.places < 1.75, four.errors[0], four.errors[2])).all()"
        ),
        "and loses least on the whole": "min(four.means, key=four.means.get) == 'even'",
        "`rceil` loses least": "min(eight.means, key=eight.means.get) == 'rceil'",
        "loses more than 3% of it": "widths[0].error > 0.03",
        "a three-hundredth": "280 < widths[0].error / widths[1].error < 320",
        "25 bits lose next to nothing": "widths[2].error < 1e-6",
        "on 512 images": "abs(by_name['bfloat16'].loss / by_name['float32'].loss - 1) < 0.01",
        "blocks of 16": "RECIPES['nvfp4'].forward.first.scaling.format.block == 16",
    },
    "11_beyond_one_process": {
        "so a third of the products differ": "0.31 < np.mean(alone != whole) < 0.36",
        "all nine blocks round with the same random numbers": (
            "(alone[:32, :32] == bits.mul(a.codes[:32, :32], b.codes[:32, :32], 'float16', **draws)[0]).all()"
        ),
        "tells each block its place (`softfloat.Position`), and nothing differs": "(placed.codes == whole).all()",
        "On a cluster they are the same two lines": "(cluster.codes == laptop.codes).all()",
        "is refused:": "'accepted: chunks of 32 along k' in said and inexact > 0",
        "must be rounded up with probability f": "abs(found.deviations) < 4 and found.up[0] == 0",
        "it says where they differ": "swept.mismatches > 0 and swept.elements == 65536",
    },
    "12_refinement": {
        "Substitution converges up to a condition of 10<sup>3</sup>": (
            "[runs['lu', power].converged for power in (1, 3, 4, 5, 7)] == [True, True, False, False, False]"
        ),
        "at 10<sup>4</sup> it has not converged after ten steps": "2e-7 < runs['lu', 4].forward[10] < 1e-4",
        "at 10<sup>5</sup> the error does not fall": "min(runs['lu', 5].forward) > 0.5",
        "needs five steps at 10<sup>7</sup>": "runs['gmres', 7].converged and runs['gmres', 7].steps == 5",
        "residuals in half do not reduce the error": "last['float16'] > 0.02",
        "near the condition times single's unit roundoff": "1e-6 < last['float32'] < 1e3 * 2**-24",
        "it is as good as exact": "last['twice'] == last['exact'] < 2**-23",
        "nothing converges": "not plain.converged and 'OVERFLOW' in str(plain.flags['factor']) and squeezed.converged",
    },
    "13_stagnation": {
        "up to 389 u": "389 < nearest[3] < 390 and abs(nearest[4] - nearest[3]) < 1",
        "stay below 3 u": "max(stochastic) < 3",
        "differences and products by a quarter are exact here": "lost['sub'].worst == 0 == lost['mul'].worst",
        "of the additions most change nothing": "lost['add'].absorbed > lost['add'].count / 2",
        "at 5.0625 from the 65th term on, in half at 7.0859 from the 513th": (
            "stands['bfloat16'] == (65, 5.0625) and stands['float16'] == (513, 7.0859375)"
        ),
    },
    "14_slices": {
        "Each slice more is worth four bits": (
            "all(10 < x / y < 30 for x, y in zip(errors['exact sums'][:4], errors['exact sums'][1:4]))"
        ),
        "so it is on a B200": "errors['B200'] == errors['exact sums'] and errors['B200'][-1] < 2**-52",
        "more than two slices do not help": "errors['H100'][-1] > 0.9 * errors['H100'][1] > 1e-3",
        "sums of 512 products do, and nothing is lost; those of 1024 do not": "positive[512] < 2**-52 and positive[1024] > 1e-4",
        "Numbers of mean zero have small sums, and lose nothing here": "max(centred.values()) < 2**-52",
    },
    "15_double_rounding": {
        "with 2p + 2 = 10 bits nothing differs": (
            "not any(shares[name, 'nearest_even'][5:] != [0] * 5 for name in ('add', 'mul', 'div', 'sqrt'))"
        ),
        "The fused multiply-add needs more": "shares['fma', 'nearest_even'][5] > 0 == shares['fma', 'nearest_even'][-1]",
        "p + 2 = 6 bits are enough for all of them": (
            "all(shares[x.__name__, 'to_odd'][0] > 0 and not any(shares[x.__name__, 'to_odd'][1:]) for x in operations)"
        ),
        "once in some ten thousand": "3e-5 < share['float16'] < 2e-4",
        "once in thirty": "0.028 < share['float8_e4m3fn'] < 0.036",
        "once in four": "0.24 < share['float8_e5m2'] < 0.26",
        "lies above the middle of two halves": "(once, twice) == (0x3C01, 0x3C00)",
    },
}
"""What the prose says, word for word, and an expression of the notebook's names that is true if it is so."""


def by_name(path: Path) -> str:
    return path.stem


@cache
def jupyter() -> SimpleNamespace:
    """What reads and runs notebooks, which takes seconds to import."""
    with warnings.catch_warnings():  # of what these import; what they do later stays an error
        warnings.simplefilter("ignore", DeprecationWarning)
        import nbclient
        import nbformat
        from jupyter_client import AsyncKernelManager, kernelspec
    return SimpleNamespace(
        AsyncKernelManager=AsyncKernelManager,
        KernelSpecManager=kernelspec.KernelSpecManager,
        NotebookClient=nbclient.NotebookClient,
        nbformat=nbformat,
    )


def prose(notebook: Any) -> str:
    return " ".join(" ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown").split())


def title(notebook: Any) -> str:
    return re.fullmatch(r"# \d+\. (.+\?)", notebook.cells[0].source.splitlines()[0])[1]


def draws(source: str) -> bool:
    """Whether a cell ends in a figure of softfloat's, or shows one of pyplot."""
    last = ast.parse(source).body[-1]
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        return False
    function = ast.unparse(last.value.func)
    if function.startswith(("comparisons.", "conversions.")) or function == "found.figure":
        return function.endswith("figure")
    return function == "plt.show" or function.removeprefix("display.").removeprefix("figures.") in FIGURES


def checked_image(data: str) -> None:
    pixels = matplotlib.image.imread(io.BytesIO(base64.b64decode(data)), format="png")
    assert min(pixels.shape[:2]) > 200
    assert np.std(pixels[..., :3]) > 0.02, "an empty picture"


@pytest.fixture
def short_folder():
    """Of a name short enough for sockets in it, which pytest's own are not everywhere."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def kernel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A kernel of this interpreter that reads no one's settings and listens to no network."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    specs = jupyter().KernelSpecManager(kernel_dirs=[])  # what is left is the native kernel, of sys.executable
    options = {}
    if os.name == "posix":  # sockets in the file system: no two workers race for a port
        options = {"transport": "ipc", "ip": str(folder / "k")}
    return jupyter().AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs, **options)


def test_all_notebooks_are_there_and_listed_on_their_page():
    assert [path.stem for path in NOTEBOOKS] == NAMES == list(CLAIMS)
    page = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"\((\w+)\.ipynb\)", page))) == NAMES
    for path in NOTEBOOKS:
        line = next(line for line in page.splitlines() if f"({path.name})" in line)
        assert title(jupyter().nbformat.read(path, as_version=4)) in line, (
            f"the title of {path.name} is not that on the page"
        )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_notebooks_are_stored_without_output(path):
    stored = json.loads(path.read_text(encoding="utf-8"))
    notebook = jupyter().nbformat.from_dict(stored)
    jupyter().nbformat.validate(notebook)
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    assert stored["metadata"] == METADATA, f"metadata other than {METADATA}: {STRIP}"
    ids = [cell["id"] for cell in stored["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in ids), "cells are named by words"
    for cell in stored["cells"]:
        assert cell["metadata"] == {}, f"cell {cell['id']!r} has metadata: {STRIP}"
        if cell["cell_type"] == "code":
            assert not cell["outputs"], f"cell {cell['id']!r} has output: {STRIP}"
            assert cell["execution_count"] is None, f"cell {cell['id']!r} has an execution count: {STRIP}"
    sources = "\n".join(
        cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"]) for cell in stored["cells"]
    )
    module, name = DOORS.get(path.stem, ("softfloat", "experiments"))
    assert re.search(rf"^from {module} import .*\b{name}\b", sources, re.MULTILINE)
    assert f"{name}." in sources


@pytest.mark.parametrize("path", NOTEBOOKS[:9], ids=by_name)
def test_notebooks_link_pages_that_there_are(path):
    links = re.findall(r"\]\((\.\./docs/[^)#]+)\)", jupyter().nbformat.read(path, as_version=4).cells[-1].source)
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_a_picture_is_the_first_that_is_shown(path):
    cells = [cell.source for cell in jupyter().nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    first = next(source for source in cells if isinstance(ast.parse(source).body[-1], ast.Expr | ast.For))
    assert draws(first) or first == 'display.value_table("float4_e2m1fn")'


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_notebooks_say_what_is_asked_of_them(path):
    text = prose(jupyter().nbformat.read(path, as_version=4))
    assert [phrase for phrase in CLAIMS[path.stem] if phrase not in text] == []


def package_calls(source: str, names: dict[str, object]) -> list[tuple[object, ast.Call]]:
    """The calls of a cell whose function is softfloat's, by the names that the notebook imports."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)):
            continue
        first, *rest = ast.unparse(node.func).split(".")
        function = names.get(first)
        if not getattr(function, "__module__", getattr(function, "__name__", "")).startswith("softfloat"):
            continue
        for name in rest:
            function = getattr(function, name)
        found.append((function, node))
    return found


def bound(function: object, call: ast.Call) -> bool:
    """Whether a function takes the arguments that a call names, whatever they are."""
    if any(isinstance(x, ast.Starred) for x in call.args) or None in {x.arg for x in call.keywords}:
        return False
    inspect.signature(function).bind(*call.args, **{x.arg: x.value for x in call.keywords})
    return True


@pytest.mark.parametrize("path", [x for x in NOTEBOOKS if x.stem in TRAINING], ids=by_name)
def test_notebooks_that_train_call_what_there_is(path):
    """What is imported can be, what is called takes these arguments."""
    missing = [name for name in NEEDED[path.stem] if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")
    names: dict[str, object] = {}
    calls = 0
    for cell in jupyter().nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        imports = [x for x in ast.parse(cell.source).body if isinstance(x, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), path.name, "exec"), names)
        calls += sum(bound(function, call) for function, call in package_calls(cell.source, names))
    assert calls > 4


TOGETHER = [NAMES[:4], NAMES[4:6], NAMES[11:]]
"""Notebooks that one kernel runs, one after the other, each in an empty namespace: a kernel takes longer to start than most of them."""
LONELY = [[name] for name in NAMES if not any(name in names for names in TOGETHER)]


@pytest.mark.parametrize(
    "names",
    [pytest.param(x, marks=pytest.mark.exhaustive) if x[0] in TRAINING else x for x in (*TOGETHER, *LONELY)],
    ids=" ".join,
)  # those that train networks take longest; the site runs each alone whenever it is built
def test_notebooks_run_draw_and_are_true(names, short_folder, monkeypatch):
    missing = [x for name in names for x in NEEDED.get(name, ()) if importlib.util.find_spec(x) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")
    paths = {path.stem: path for path in NOTEBOOKS}
    read = {name: list(jupyter().nbformat.read(paths[name], as_version=4).cells) for name in names}
    asked = {
        name: jupyter().nbformat.v4.new_code_cell(f"[bool(found) for found in ({', '.join(CLAIMS[name].values())})]")
        for name in names
    }
    notebook = jupyter().nbformat.v4.new_notebook()
    for name in names:
        strict = jupyter().nbformat.v4.new_code_cell(STRICT)
        notebook.cells += [jupyter().nbformat.v4.new_code_cell("%reset -f"), strict, *read[name], asked[name]]
    manager = kernel(short_folder, monkeypatch)
    place = short_folder / "of a reader"  # who has the package, a notebook and nothing of the checkout
    place.mkdir()
    client = jupyter().NotebookClient(
        notebook, km=manager, timeout=HANG, startup_timeout=HANG, resources={"metadata": {"path": str(place)}}
    )
    client.execute(cleanup_kc=True)  # or the kernel, which is not the client's own, would go on
    for name in names:
        answers = ast.literal_eval(asked[name].outputs[0]["data"]["text/plain"])
        assert [phrase for phrase, holds in zip(CLAIMS[name], answers, strict=True) if not holds] == [], name
        assert pictures_of(read[name], name) >= 1


def pictures_of(cells, name):
    """How many pictures cells have drawn, each one checked."""
    pictures = 0
    for cell in cells:
        if cell.cell_type != "code":
            continue
        assert [output.text for output in cell.outputs if output.get("name") == "stderr"] == []
        images = [output["data"]["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
        assert len(images) == draws(cell.source), f"cell {cell.id!r} of {name} shows {len(images)} pictures"
        for image in images:
            checked_image(image)
        pictures += len(images)
    return pictures


COMPILES = """import numpy as np
from softfloat.kernels import jit

jit.SLOW_COMPILATION_SECONDS = 0.0

def doubling_loop(values):
    for i in range(values.size):
        values[i] *= 2

values = np.ones(3)
jit.compiled(doubling_loop)(values)
print(values)"""


def test_that_loops_are_compiled_is_told_to_the_log_and_not_to_the_cell(short_folder, monkeypatch):
    """A live kernel with an empty cache: what a cell shows would be stored with it."""
    kept, log = short_folder / "compiled", short_folder / "log"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(kept))
    cell = jupyter().nbformat.v4.new_code_cell(COMPILES)
    client = jupyter().NotebookClient(
        jupyter().nbformat.v4.new_notebook(cells=[cell]), km=kernel(short_folder, monkeypatch), timeout=HANG
    )
    with log.open("wb") as file:
        client.execute(cleanup_kc=True, stderr=file)
    assert [(output.name, output.text) for output in cell.outputs] == [("stdout", "[2. 2. 2.]\n")]
    compiled = not os.environ.get("NUMBA_DISABLE_JIT")
    told = log.read_text(encoding="utf-8")
    assert ("softfloat: compiling loops that are not in the cache yet" in told) == compiled
    assert ("softfloat: compiling doubling_loop took" in told) == compiled
    assert any(kept.rglob("doubling_loop-*.bin")) == compiled
