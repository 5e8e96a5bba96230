"""Each file imports from lower floors only, kernels never from the package, and importing is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import softfloat

PACKAGE = Path(softfloat.__file__).parent
STANDARD = set(sys.stdlib_module_names)

FLOORS = [
    {"kernels.spec", "kernels.compile_cache"},
    {"kernels.jit"},
    {"kernels.carrier", "kernels.prng"},
    {"kernels.rounding"},
    {"kernels.arith"},
    {"kernels.fast"},
    {"kernels.accumulate"},
    {"kernels.lanes"},
    {"kernels.loops", "kernels.dots", "kernels.tiles"},
]
"""Kernels from the bottom up; a file there need not exist, but one that exists has its floor."""

ALLOWED = {
    "_markup": {"rich"},
    "formats": {"_markup", "kernels.spec", "numpy", "ml_dtypes"},
    "status": {"kernels.spec", "numpy"},
    "environment": {"kernels.spec", "status", "formats", "numpy"},
    "reference": {"formats", "environment", "status", "kernels.spec", "mpmath"},
    "reference_dot": {"formats", "reference", "kernels.spec"},
    "functions": {"_call", "_engine", "formats", "environment", "kernels.spec", "numpy", "mpmath"},
    "accumulators": {"formats", "environment", "kernels.spec", "numpy"},
    "_measures": {"bits", "formats", "environment", "status", "numpy", "mpmath"},
}
"""All that these modules import, the standard library aside."""

TOP = ["figures", "display", "cli", "__main__", "examples", "experiments", "testing", "torch"]
OTHERS = {"torch": "pytorch"}
"""What to call packages that share their name with one below softfloat."""
HEAVY = [
    "numba",
    "llvmlite",
    "mpmath",
    "matplotlib",
    "rich",
    "ml_dtypes",
    "torch",
    "gmpy2",
    "hypothesis",
    "pytest",
    "sklearn",
]


def modules() -> dict[str, Path]:
    """Dotted name below softfloat -> file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")) + sorted((PACKAGE / "kernels").glob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def statements(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements, those inside functions too, those for type checkers not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        yield from statements(node)


def resolved(name: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What a statement in module `name` imports: names below softfloat, "softfloat" itself, or other packages."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top, _, rest = alias.name.partition(".")
            yield (rest or "softfloat") if top == "softfloat" else OTHERS.get(top, top)
        return
    package = f"softfloat.{name}".split(".")
    if MODULES[name].name != "__init__.py":
        package = package[:-1]
    base = (
        ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
        if node.level
        else str(node.module)
    )
    top, _, rest = base.partition(".")
    if top != "softfloat":
        yield OTHERS.get(top, top)
        return
    for alias in node.names:
        member = f"{rest}.{alias.name}".lstrip(".")
        yield member if member in MODULES else rest or "softfloat"


IMPORTS = {
    name: {x for node in statements(ast.parse(path.read_text(encoding="utf-8"))) for x in resolved(name, node)} - {name}
    for name, path in MODULES.items()
}


def floor(name: str) -> int:
    return next(level for level, names in enumerate(FLOORS) if name in names)


def inside(name: str, tops: list[str]) -> bool:
    return name.split(".")[0] in tops


def test_the_parser_sees_imports() -> None:
    assert {"kernels.spec", "kernels.jit", "kernels.loops", "bits", "_engine", "formats", "reference"} <= set(MODULES)
    assert {"kernels.rounding", "kernels.arith", "kernels.prng", "numpy"} <= IMPORTS["kernels.loops"]
    assert {"_engine", "formats", "environment", "kernels.spec"} <= IMPORTS["bits"]
    assert "kernels.loops" in IMPORTS["_engine"]
    assert "numba" in IMPORTS["kernels.jit"]
    assert "types" not in IMPORTS["_engine"]


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("kernels.")])
def test_kernels(name: str) -> None:
    imported = IMPORTS[name]
    kernels = {x for x in imported if x.startswith("kernels.")}
    assert all(floor(x) < floor(name) for x in kernels)
    others = imported - kernels - STANDARD
    assert others <= (set() if name == "kernels.spec" else {"numpy", "numba", "llvmlite"})
    assert not imported & {"softfloat", "kernels"}


@pytest.mark.parametrize("name", ALLOWED)
def test_lower_modules_import_no_more_than_they_may(name: str) -> None:
    assert IMPORTS[name] - STANDARD <= ALLOWED[name]


def test_upper_modules() -> None:
    for name in set(MODULES) - {""}:
        if name.startswith("kernels") or inside(name, TOP):
            continue
        assert not any(inside(x, TOP) for x in IMPORTS[name]), f"{name} imports from the top floor"
        assert "softfloat" not in IMPORTS[name], f"{name} imports the package it is part of"
    for name in ("_engine", "formats", "environment", "status"):
        assert "bits" not in IMPORTS[name]
    assert "reference" not in IMPORTS["bits"] | IMPORTS["_engine"]


def test_no_circles() -> None:
    edges = {name: {x for x in imported if x in MODULES} for name, imported in IMPORTS.items() if name}
    while edges:
        leaves = {name for name, imported in edges.items() if not imported & set(edges)}
        assert leaves, f"imports run in a circle among {sorted(edges)}"
        edges = {name: imported for name, imported in edges.items() if name not in leaves}


# -- what importing loads --------------------------------------------------------------------------------------------


def python(script: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_is_light() -> None:
    loaded = python("import sys, softfloat; print(*sys.modules)").split()
    assert "softfloat.bits" in loaded
    assert not {name.split(".")[0] for name in loaded} & set(HEAVY)


def test_mpmath_comes_with_the_first_function() -> None:
    script = "import sys; from softfloat import bits; bits.add(0, 0, 'float16'); print('mpmath' in sys.modules)"
    assert python(script) == "False\n"
    assert python(script.replace("bits.add(0, 0", "bits.exp(0")) == "True\n"


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
