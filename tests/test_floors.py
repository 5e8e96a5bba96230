"""Folders are floors: what may import what, as ARCHITECTURE.md draws it; and importing is light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import softfloat.kernels

import softfloat

PACKAGE = Path(softfloat.__file__).parent
KERNELS = Path(softfloat.kernels.__file__).parent
CHECKOUT = Path(__file__).parent.parent

FLOORS = """
kernels
checks progress frozen
status markup files positions
formats processors
blocks
environments recipes
descriptions
accumulators reference
engine
cuda
bits
rounding runner
arrays display jit scaling
analysis
linalg
chop interchange
dask
experiments onnx testing torch
export
commands
examples
"""
"""Folders and modules of softfloat/ from the bottom up. Each imports from the floors below its own only, imports for type checkers included."""

INSIDE = {
    "kernels": "compile_cache linking spec | jit targets | carrier parts prng words | dot_state | rounding values | arith | "
    "fast sticky wide | accumulate ordinary wide_exact | vectors | steps | "
    "tiles | comparisons loops dot_steps quantization | dots "
    "four_over_six panels rules sums.description sums.guarded sums.language sums.layouts sums.observers sums.orders sums.whole | "
    "units | elements exact_units hadamard sums.careful sums.noise sums.scalars | "
    "counted_units halves paired singles sums.native sums.quick wide_elements | "
    "sums.arithmetics sums.writing | sums.loop | sums.segments | "
    "blocks entries inlined sums.in_order sums.reading sums.threads sums.trees sums.units | "
    "exported sums.target",
    "accumulators": "roster | accumulator | presets tensor_cores ipu units assumptions splits | torch_products",
    "reference": "values | fixed_point rounding | arithmetic comparisons conversions | blocks functions outputs | running scaled units | dots",
    "recipes": "lists vocabularies | graph recipe | colouring | variables",
    "engine": "arguments threads | parameters pools problems results | decoding draws programs | generated | elementwise inlined native | "
    "folds options panels transforms values ways | apart tiling unit_ways | entire trees | units | lines plain scaled_segments | described "
    "segments stacks | block_units joined prefixes wide_sums | calls products quantization | small",
    "cuda": "compiling | arrays | elementwise | plain | generated | products",
    "blocks": "fixed | formats | rules",
    "bits": "arithmetic blocks.codes functions.bounds functions.precise operations signatures sums.products sums.windows | "
    "functions.exactness numbers comparisons sums.convolutions | functions.table blocks.scales blocks.ways codes | "
    "functions.values blocks.elements blocks.numbers blocks.sums sums.splits | functions.wide functions.ways blocks.counts | functions.evaluations "
    "functions.named blocks.quantization | processors scalars",
    "arrays": "decimals exchange readers standard views | held | operands | operators | softarray | creation handlers | functions order | sums | "
    "products statistics | namespace ufuncs",
    "analysis": "bounds measures repetitions traces transformations | shadows",
    "linalg": "scalings steps | factors rotations | krylov numpys | refinement",
    "scaling": "recipes | tables tensors | hadamard libraries | products | convolutions",
    "display": "drawing measures numbers orders summation | figures saving graphs inspection | blocks tables | block_exploration | "
    "exploration | pages | widgets",
    "interchange": "members packing stores | archives tensor_files | columns files",
    "export": "functions targets | headers | scripts numerics | library",
    "experiments": "choices exact truncation | overflow quantisation scaling underflow accumulation squares swamping training | published | claims "
    "random_bits | figures numerics",
    "dask": "following schedulers | blocks sweeps | collections counting | products storage | convolutions functions",
    "testing": "assertions plugin | vectors.columns vectors.expressions | vectors.exact_numbers | vectors.block_operations | vectors.operations | "
    "vectors.corners vectors.error_reports vectors.headings | vectors.dots | vectors.block_rows | vectors.distributions | "
    "vectors.streams | vectors.levels vectors.text | vectors.archives | vectors.files vectors.measures | vectors.block_measures | vectors.coverage | "
    "strategies | verdicts.cause verdicts.comparisons | verdicts.block_causes verdicts.likeness verdicts.plain_units verdicts.sum_causes | "
    "verdicts.causes | verdicts.diagnosis | verdicts.regions | verdicts.reports | verdicts.check | hardware.features hardware.instructions "
    "hardware.ptx | hardware.table hardware.cuda hardware.tiles | hardware.operands | hardware.model | "
    "identification.probes identification.scales | identification.structures | identification.units",
    "onnx": "behaviours scopes tensors | graphs unit weights | reports table | elementwise moves products rewriting | casts colours stages | "
    "conversion operators | evaluator | block_lists comparison",
    "torch": "private operators.bridge operators.devices operators.recipes operators.tables | operators.unit operators.wide | "
    "operators.device_products operators.norms operators.pointwise operators.products | operators.device_steps "
    "operators.device_sums operators.scaled | operators.scaled_mm | operators.plans | emulation | practices.metrics practices.parameters | "
    "practices.accumulation practices.autocast practices.inspection | practices.scaling practices.tracing | practices.amp "
    "practices.conversion | practices.training | practices.replicas practices.tuning",
    "commands": "arguments output | cases explore export onnx_convert reproduce | inspect scales | hardware | "
    "accumulators coverage formats onnx | vectors | parser | __main__",
    "examples": "data device models rounding_statistic | comparisons conversions reports scaled | "
    "program | float32_parameter_updates lenet5 stochastic_rounding | estimator",
}
"""The same inside each folder; a folder's front door, __init__, stands above its files."""

HEAVY = {
    "numba",
    "llvmlite",
    "mpmath",
    "matplotlib",
    "rich",
    "ml_dtypes",
    "torch",
    "onnx",
    "dask",
    "distributed",
    "zarr",
    "safetensors",
    "pandas",
    "pyarrow",
    "jax",
    "gmpy2",
    "hypothesis",
    "pytest",
    "sklearn",
}


def levels(floors: list[str]) -> dict[str, int]:
    return {name: level for level, line in enumerate(floors) for name in line.split()}


LEVEL = levels(FLOORS.strip().split("\n"))
INNER_LEVEL = {name: levels(floors.split("|")) for name, floors in INSIDE.items()}


def modules() -> dict[str, Path]:
    """Dotted name below softfloat -> file."""
    found = {}
    for root, prefix in ((PACKAGE, ()), (KERNELS, ("kernels",))):
        for path in sorted(root.rglob("*.py")):
            parts = (*prefix, *path.relative_to(root).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def statements(name: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Import statements of a module, those inside functions and those for type checkers too."""
    found, waiting = [], [ast.parse(MODULES[name].read_text(encoding="utf-8"))]
    while waiting:
        node: Any = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append(node)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):  # expressions hold no statements
            waiting += getattr(node, part, ())
    return tuple(found)


def resolved(name: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What a statement in module `name` imports, in full."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    package = f"softfloat.{name}".split(".")[: None if MODULES[name].name == "__init__.py" else -1]
    base = (
        [*package[: len(package) - node.level + 1], *filter(None, [node.module])] if node.level else [node.module or ""]
    )
    for alias in node.names:
        member = ".".join([*base, alias.name])
        yield member if member.partition(".")[2] in MODULES else ".".join(base)


@cache
def imports_of(name: str) -> set[str]:
    """What a module imports, in full."""
    return {x for node in statements(name) for x in resolved(name, node)}


@cache
def inner_of(name: str) -> set[str]:
    """What it imports from softfloat, by names below it; "" is its front door."""
    return {x.partition(".")[2] for x in imports_of(name) if x.partition(".")[0] == "softfloat"} - {name}


def inner_of_all() -> Iterator[tuple[str, set[str]]]:
    return ((name, inner_of(name)) for name in MODULES)


def folder(name: str) -> str:
    return name.partition(".")[0]


def test_the_parser_sees_imports() -> None:
    assert {"kernels.spec", "kernels.jit", "engine.elementwise", "bits.sums", "formats", "reference.rounding"} <= set(
        MODULES
    )
    assert {"kernels.rounding", "kernels.arith", "kernels.prng"} <= inner_of("kernels.loops")
    assert {"engine", "formats", "environments"} <= inner_of("bits.numbers")
    assert "numba" in imports_of("kernels.jit")
    assert any("kernels.prng" in found for name, found in inner_of_all() if folder(name) == "engine")


def test_every_folder_has_its_floor() -> None:
    assert {folder(name) for name in MODULES} - {"", "__main__"} == set(LEVEL)
    files = {name for name, path in MODULES.items() if "." in name and path.name != "__init__.py"}
    assert files == {f"{name}.{inner}" for name, order in INNER_LEVEL.items() for inner in order}


@pytest.mark.parametrize("name", sorted(set(MODULES) - {"", "__main__"}))
def test_imports_go_down(name: str) -> None:
    """The front door is for the outside, and for the applications, which stand beside it."""
    own = LEVEL[folder(name)]
    for imported in inner_of(name):
        if imported == "":
            assert own >= LEVEL["commands"], f"{name} imports the package it is part of"
        elif folder(imported) != folder(name):
            assert LEVEL[folder(imported)] < own, f"{name} imports {imported}, which is not below it"


@pytest.mark.parametrize("name", sorted(name for name in MODULES if "." in name))
def test_imports_go_down_inside_a_folder(name: str) -> None:
    """Files do not import their own folder's front door, either."""
    order = INNER_LEVEL[folder(name)]
    own = order.get(name.partition(".")[2], len(order))
    for imported in inner_of(name):
        if folder(imported) == folder(name) and MODULES[imported].name != "__init__.py":
            assert order[imported.partition(".")[2]] < own, f"{name} imports {imported}, which does not stand before it"
        assert imported != folder(name) or name.endswith(".__main__"), f"{name} imports the folder that it is in"


@pytest.mark.parametrize("name", sorted(name for name in MODULES if name.startswith("kernels.")))
def test_kernels_import_nothing_of_the_package(name: str) -> None:
    assert {folder(x) for x in inner_of(name)} <= {"kernels"}
    outside = {x.partition(".")[0] for x in imports_of(name)} - set(sys.stdlib_module_names) - {"softfloat"}
    assert outside <= (set() if name in ("kernels.spec", "kernels.targets") else {"numpy", "numba", "llvmlite"})


def test_only_the_engine_and_the_gpu_run_kernels() -> None:
    for name, found in inner_of_all():
        if folder(name) not in ("cuda", "engine", "kernels"):
            assert {x for x in found if folder(x) == "kernels"} <= {"kernels.spec"}, name


def test_the_oracle_knows_descriptions_alone() -> None:
    known = {"reference", "formats", "blocks", "environments", "status", "frozen", "kernels"}
    for name in MODULES:
        if folder(name) == "reference":
            assert {folder(x) for x in inner_of(name)} <= known


def test_no_circles() -> None:
    edges = {name: {x for x in found if x in MODULES} for name, found in inner_of_all() if name}
    while edges:
        leaves = {name for name, found in edges.items() if not found & set(edges)}
        assert leaves, f"imports run in a circle among {sorted(edges)}"
        edges = {name: found for name, found in edges.items() if name not in leaves}


def test_names_looked_up_late_come_from_below() -> None:
    """An import hidden in a string is an arrow all the same."""
    for name, path in MODULES.items():
        for target in re.findall(r'import_module\(f?"softfloat\.(\w+)', path.read_text(encoding="utf-8")):
            assert LEVEL[target] <= LEVEL[folder(name)], (name, target)


def test_private_names_stay_in_their_folder() -> None:
    assert not [name for name in MODULES if re.search(r"(^|\.)_[a-z]", name)]
    for name in MODULES:
        for node in statements(name):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("softfloat"):
                private = [alias.name for alias in node.names if alias.name.startswith("_") and alias.asname is None]
                assert not private or node.module == f"softfloat.{name.rpartition('.')[0]}", (name, private)


def test_the_picture_is_the_list() -> None:
    page = CHECKOUT / "ARCHITECTURE.md"
    if not page.exists():
        pytest.skip("not in a checkout")
    drawn = re.search(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert drawn
    lines = [" ".join(line[:32].split()) for line in drawn[1].strip("\n").split("\n")]
    assert lines[::-1] == FLOORS.strip().split("\n")


def test_every_package_is_shipped() -> None:
    project = CHECKOUT / "pyproject.toml"
    if not project.exists():
        pytest.skip("not in a checkout")
    text = project.read_text(encoding="utf-8")
    listed = re.search(r"^packages = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    data = re.findall(
        r'^"([\w.]+)" = \["\*"\]$', text, re.MULTILINE
    )  # folders without Python, which hold files that are read
    assert listed
    packages = {f"softfloat.{name}".rstrip(".") for name, path in MODULES.items() if path.name == "__init__.py"}
    assert set(re.findall(r'"([\w.]+)"', listed[1])) == {*packages, *data}


# -- what importing loads --------------------------------------------------------------------------------------------


def python(script: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_is_light() -> None:
    loaded = python("import sys, softfloat; print(*sys.modules)").split()
    assert "softfloat.bits" in loaded
    assert not {name.split(".")[0] for name in loaded} & HEAVY


def test_the_first_call_may_be_of_many_threads() -> None:
    """Which import the compiled floors, and Numba with them, one after the other: 0x3C00 is 1."""
    script = "import numpy, softfloat; softfloat.set_num_threads(2); a = numpy.full(1 << 19, 0x3C00, numpy.uint16); "
    assert python(script + "print(int(softfloat.bits.decode(a, 'float16').sum()))").split() == [str(1 << 19)]


def test_mpmath_comes_with_the_first_table_of_a_function() -> None:
    script = "import sys; from softfloat import bits; bits.{}, 'float16'); print('mpmath' in sys.modules)"
    assert python(script.format("add(0, 0")) == python(script.format("exp(0")) == "False\n"
    assert python(script.format("exp([*range(300)]")) == "True\n"


def test_numba_comes_with_the_first_compiled_call() -> None:
    assert (
        python("import sys, softfloat; softfloat.bits.add([], [], 'float16'); print('numba' in sys.modules)")
        == "True\n"
    )


def test_formats_environments_and_the_reference_do_without_numba() -> None:
    script = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import softfloat
from softfloat import reference, Format, environment
fmt = Format("e6m9", exponent_bits=6, mantissa_bits=9)
with environment(rounding="RTZ", traps="INV") as env:
    env.status.raise_flags(env.traps)
code, _ = reference.encode(0.1, softfloat.float16)
print(reference.add(fmt.one_code, fmt.one_code, fmt), hex(code), fmt.max, env.status)
print(softfloat.bits.isnan(0x7E00, "float16"), softfloat.bits.negative(0x3C00, "float16"))
"""
    assert python(script).splitlines() == ["(16384, 0) 0x2e66 4290772992.0 OFLO 0x0 DIV0 0x0 INV 0x1", "True 48128"]
