"""Object code for other languages: which functions it has, and the tables behind them, as a job for `kernels.exported`."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from softfloat.accumulators import Accumulator
from softfloat.engine import programs
from softfloat.engine.parameters import dots
from softfloat.engine.programs import Program, Site
from softfloat.environments import Settings
from softfloat.formats import Format
from softfloat.kernels import rules, spec, targets
from softfloat.kernels.rules import KNOBS, Length, Plan, StageRow
from softfloat.kernels.spec import FormatSpec, Rounding
from softfloat.kernels.targets import Source, Target

__all__ = ["FLOAT64", "REFUSED", "Job", "Machine", "host", "rule_bits", "shift_of"]

FLOAT64 = spec.FLOAT64
REFUSED = rules.REFUSED
POLICIES = tuple(spec.NAN_POLICIES)
KINDS: dict[str, Callable[[int], Any]] = {
    "rounding": Rounding,
    "overflow": spec.Overflow,
    "tininess": spec.Tininess,
    "infinite_input": spec.InfiniteInput,
    "daz": bool,
    "ftz": bool,
    "nan": lambda number: POLICIES[number],
}
"""Knobs that a stage may have of its own, and what their numbers stand for: settings of the same name."""


class Machine(NamedTuple):
    """What object code is for, in LLVM's words."""

    triple: str
    cpu: str
    features: str
    abi: str


def host() -> Machine:
    """This computer, its own CPU."""
    import llvmlite.binding as llvm

    features: str = llvm.get_host_cpu_features().flatten()
    return Machine(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, "")


def rule_bits(settings: Settings, exact: bool = True) -> int:
    """The rule of some settings, as exported functions take it."""
    chosen = {name: _number(name, getattr(settings, name)) for name in KINDS}
    chosen |= {"quiet_integers": int(not exact), "random_width": settings.sr_bits or 0}
    return sum(value << KNOBS[name].shift for name, value in chosen.items())


def _number(knob: str, value: Any) -> int:
    return POLICIES.index(value) if knob == "nan" else int(value)


def _rule(knobs: dict[str, int], conversion: bool, always_infinite: bool, pair: tuple[str, str] | None) -> spec.Rule:
    """The rule that some knobs are, the others as they are by default; `pair`: which formats a conversion is between."""
    chosen = {name: kind(knobs.get(name, 0)) for name, kind in KINDS.items()}
    return spec.Rule(
        **chosen,
        conversion=conversion,
        always_infinite=always_infinite,
        random_width=knobs.get("random_width", 0) or 52,
        handed_bits=True,
        payloads=spec.converted_payloads(chosen["nan"], *pair, chosen["rounding"]) if pair else "policy",
    )


Tables = tuple[int, int]
"""Where a Source or a Target begins among the integers, and among the floats."""


@dataclass
class Job:
    """Functions of one object, and the numbers that they read.

    Attributes
    ----------
    integers, floats, data, values : list, bytes
        Tables of all functions.
    functions : list of dict
        One for each, as `kernels.exported.Writer` reads it.
    """

    integers: list[int] = field(default_factory=list)
    floats: list[float] = field(default_factory=list)
    data: list[int] = field(default_factory=list)
    values: bytearray = field(default_factory=bytearray)
    functions: list[dict[str, Any]] = field(default_factory=list)
    tabled: dict[str, int] = field(default_factory=dict)
    known: dict[Any, Tables] = field(default_factory=dict)
    plans: dict[Any, tuple[int, bool]] = field(default_factory=dict)

    # -- tables --------------------------------------------------------------------------------------------------------

    def _table(self, key: Any, numbers: type, make: Callable[[dict[str, int]], Any]) -> Tables:
        if key not in self.known:
            self.known[key] = len(self.integers), len(self.floats)
            self.integers += rules.table(numbers, int, make)
            self.floats += rules.table(numbers, float, make)
        return self.known[key]

    def source(self, fmt: FormatSpec) -> Tables:
        """What codes of a format mean, under any rule."""
        return self._table(fmt, Source, lambda knobs: targets.source(fmt, spec.CARRIER64, bool(knobs.get("daz", 0))))

    def target(
        self, fmt: FormatSpec, conversion: bool, always_infinite: bool = False, pair: tuple[str, str] | None = None
    ) -> Tables:
        """What rounds into a format, under any rule; `pair`: names of the formats that a conversion is between, where these count."""

        def make(knobs: dict[str, int]) -> Target:
            return targets.target(fmt, _rule(knobs, conversion, always_infinite, pair), spec.CARRIER64)

        return self._table((fmt, conversion, always_infinite, pair), Target, make)

    # -- functions -----------------------------------------------------------------------------------------------------

    def element(
        self,
        name: str,
        kernel: str,
        form: str,
        takes: Sequence[str],
        gives: str,
        source: FormatSpec,
        fmt: Format,
        origin: str = "",
    ) -> None:
        """A function of codes of `source`, which a conversion knows by the name `origin`; results in `fmt`.

        `kernel` is "selected" and an operation of `kernels.loops`, "compare" and a relation, "extremum" or "decode"; `form` is "",
        "random", "at", "array" or "array_at"; `takes` and `gives` are types of C.
        """
        conversion = "convert" in kernel or "from_" in kernel
        named = any(row[1:] == (origin, fmt.name) for row in spec.NAN_CONVERSIONS)
        pair = (origin, fmt.name) if named else None
        self.functions.append(
            {
                "name": name,
                "kernel": kernel,
                "form": form,
                "takes": list(takes),
                "gives": gives,
                "limits": (0 if source == FLOAT64 else source.width) | int(fmt.has_nan) << 8,
                "tables": [*self.source(source), *self.target(fmt.spec, conversion, pair=pair)],
            }
        )

    def by_table(
        self,
        name: str,
        form: str,
        takes: Sequence[str],
        fmt: Format,
        key: str,
        values: Callable[[], np.ndarray[Any, Any]],
    ) -> None:
        """A function of codes whose values are known, named `key`: for each code, and for +0 and -0 after these."""
        if key not in self.tabled:
            self.tabled[key] = len(self.values)
            self.values += np.ascontiguousarray(values(), "<f8").tobytes()
        self.element(name, f"table {len(takes)}", form, takes, takes[0], fmt.spec, fmt)
        self.functions[-1]["values"] = self.tabled[key]

    def generator(self, name: str, seeds: bool) -> None:
        """A function that gives the next random bits of the IPU's generator, or one that seeds it."""
        self.functions.append({"name": name, "kernel": "xoroshiro", "form": "generator", "seeds": int(seeds)})

    def random_bits(self, name: str) -> None:
        """A function that tells the random bits of an address."""
        self.functions.append({"name": name, "kernel": "random", "form": "random_bits"})

    def dot(
        self,
        name: str,
        form: str,
        takes: Sequence[str],
        gives: str,
        accumulator: Accumulator,
        fmt: Format,
        output: Format,
        lengths: Sequence[int],
        addend: bool,
    ) -> None:
        """A dot product of two arrays of codes of `fmt`, of one of some lengths; `form` is "" or "at", `addend`: whether it starts at a code c."""
        plan, _ = self.plan(accumulator, fmt, output, lengths)
        row = {"name": name, "kernel": "dot", "form": form, "takes": list(takes), "gives": gives, "addend": int(addend)}
        self.functions.append({**row, "plan": plan, "arena": _arena(accumulator, max(lengths))})

    def plan(self, accumulator: Accumulator, fmt: Format, output: Format, lengths: Sequence[int]) -> tuple[int, bool]:
        """Where the plan of an accumulator begins among the integers; whether a stage draws whatever the rule."""
        key = accumulator, fmt, output, tuple(lengths)
        if key not in self.plans:
            self.plans[key] = _Planner(self, accumulator, fmt, output, lengths).made()
        return self.plans[key]

    # -- object code ---------------------------------------------------------------------------------------------------

    def kernels(self) -> list[str]:
        """Names of the kernels that the functions call, each once, in order."""
        found: dict[str, None] = {}
        for row in self.functions:
            found[row["kernel"]] = None
            if row["form"] in ("random", "at", "array_at"):
                found["random"] = None
                if row["kernel"].startswith("selected "):
                    found[row["kernel"].replace("selected", "drawn", 1)] = None
        return sorted(found)

    def object_code(self, machine: Machine) -> bytes:
        """The object.

        Raises
        ------
        RuntimeError
            If it cannot be made, with the reason.
        """
        values = base64.b64encode(bytes(self.values)).decode()
        tables = {"integers": self.integers, "floats": self.floats, "bytes": self.data, "values": values}
        job = {**machine._asdict(), **tables, "functions": self.functions, "kernels": self.kernels()}
        options = {
            "NUMBA_OPT": "0",
            "NUMBA_CPU_NAME": "generic",
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_DISABLE_INTEL_SVML": "1",
            "NUMBA_LOOP_VECTORIZE": "0",
            "NUMBA_SLP_VECTORIZE": "0",
            "NUMBA_DISABLE_JIT": "0",
            "PYTHONHASHSEED": "0",
        }
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("NUMBA_") or name == "NUMBA_CACHE_DIR"
        }
        script = f"import sys; sys.path[:] = {sys.path!r}; from softfloat.kernels.exported import main; main()"
        command = [sys.executable, "-c", script]  # of the kernels that this process has, wherever it found them
        done = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, env=kept | options)
        if done.returncode or not done.stdout:
            reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it ended without a word"]
            raise RuntimeError(f"the compiler made no object code: {reason[0]}")
        return done.stdout


# -- dot products ------------------------------------------------------------------------------------------------------

OTHERS = dict.fromkeys(KINDS, (0, 1)) | {
    "rounding": (0, int(Rounding.TOWARD_ZERO)),
    "nan": (0, POLICIES.index("x86")),
}
"""Two values of each knob: a stage that has its own has it under both."""


def _arena(accumulator: Accumulator, longest: int) -> int:
    """Bytes enough for the arrays of a dot product."""
    return 49152 + 2048 * len(accumulator.reduction) + 1024 * accumulator.chains + 64 * longest


class _Planner:
    """The plan of one accumulator, for codes of one format."""

    def __init__(self, job: Job, accumulator: Accumulator, fmt: Format, output: Format, lengths: Sequence[int]) -> None:
        self.job, self.accumulator, self.fmt, self.output, self.lengths = job, accumulator, fmt, output, lengths
        self.first = self.program(lengths[0])

    def program(self, length: int, **settings: Any) -> Program:
        return programs.program(self.accumulator, self.fmt, self.fmt, self.output, Settings(**settings), length)

    def made(self) -> tuple[int, bool]:
        """(where it begins, whether it always draws)."""
        job, planned, accumulator = self.job, self.first, self.accumulator
        floor = dots()
        levels = accumulator.reduction
        sites = floor.LEVEL + 2 * max(len(levels), 1)
        rows = [self.stage(planned.sites.get(site), site) for site in range(sites)]
        any_row = rows[floor.RUNNING]
        rows = [row if row is not None else any_row._replace(present=0) for row in rows if any_row is not None]
        source, target = job.source(self.fmt.spec), job.target(self.fmt.spec, False)
        operand = StageRow(0, 0, 0, 1, *source, *target)
        stages = self.keep([x for row in [*rows, operand] if row is not None for x in row])
        by_length = {length: self.length(self.program(length)) for length in self.lengths}
        missing = Length(-1, 0, 0, 0, -1, 0, 0, 0)
        lengths = self.keep([x for k in range(max(self.lengths) + 1) for x in by_length.get(k, missing)])
        stored = self.keep_bytes([floor.LEVEL + 2 * level + 1 in planned.sites for level in range(len(levels))])
        bins = self.bins()
        magics = len(job.floats)
        running, product = planned.sites[floor.RUNNING].format, accumulator.product
        operand_tiny = float((accumulator.unpacked or self.fmt).tiny)
        factors = [operand_tiny, operand_tiny] if product is None else [float(product.format.tiny), 1.0]
        zeros = accumulator.aligned.zeros if accumulator.aligned else None
        of_zero = 0.0 if zeros is None else 2.0**zeros
        job.floats += [*bins, *factors, float(running.tiny), of_zero, 2.0**accumulator.scale_exponent]
        daz = [self.program(self.lengths[0], daz=x).daz for x in (False, True)]
        plan = Plan(
            choices=self.keep(programs.choices(planned)),
            arithmetic=floor.PRODUCT if floor.PRODUCT in planned.sites else floor.RUNNING,
            sites=sites,
            bins=len(bins),
            longest=max(self.lengths),
            size=self.fmt.dtype.itemsize,
            limits=self.fmt.bits,
            limits_c=planned.partials.bits,
            daz=-1 if daz == [False, True] else int(daz[0]),
            lengths=lengths,
            stages=stages,
            magics=magics,
            stored=stored,
        )
        always = any(Rounding(row.fixed & KNOBS["rounding"].mask).draws for row in rows if row is not None)
        return self.keep(plan), always

    def keep(self, numbers: Iterable[int]) -> int:
        start = len(self.job.integers)
        self.job.integers += [int(x) for x in numbers]
        return start

    def keep_bytes(self, numbers: Iterable[int]) -> int:
        start = len(self.job.data)
        self.job.data += [int(x) for x in numbers]
        return start

    def stage(self, site: Site | None, number: int) -> StageRow | None:
        """A stage, with the knobs that it has of its own: those that settings do not move."""
        if site is None:
            return None
        keep = KNOBS["random_width"].mask | KNOBS["quiet_integers"].mask
        fixed = 0
        for name, values in OTHERS.items():
            settings = [{name: KINDS[name](value)} for value in values]
            programs_ = [self.program(self.lengths[0], seed=0, **x) for x in settings]
            seen = [_number(name, getattr(x.sites[number].rule, name)) for x in programs_]
            if seen == list(values):
                keep |= KNOBS[name].mask
            else:
                fixed |= seen[0] << KNOBS[name].shift
        tables = (
            *self.job.source(site.format.spec),
            *self.job.target(site.format.spec, site.rule.conversion, site.rule.always_infinite),
        )
        return StageRow(1, keep, fixed, int(site.format.has_nan), *tables)

    def length(self, planned: Program) -> Length:
        """The program for one length."""
        index = -1 if planned.index is None else self.keep(planned.index)
        stores, closes = self.keep_bytes(planned.stores), self.keep_bytes(planned.closes)
        carries = int(planned.carries or self.program(planned.products, nan="x86").carries)
        return Length(planned.length, planned.kind, carries, planned.block, index, planned.stores.size, stores, closes)

    def bins(self) -> list[float]:
        """The grids of the bins that hold every term and sum of any operands."""
        planned, each = self.first, [self.program(length) for length in self.lengths]
        if all(program.kind != dots().EXACT for program in each) and self.accumulator.leaf == 1:
            return [0.0]
        longest = max(program.length for program in each)
        formats = [planned.partials, *(site.format for site in planned.sites.values())]
        scale = self.accumulator.scale_exponent
        lows = [2 * _last(self.fmt) + scale, *map(_last, formats)]
        highs = [2 * (self.fmt.emax + 1) + scale, *(x.emax + 1 + longest.bit_length() for x in formats)]
        grids: list[float] = dots().grids(min(lows), max(highs) + longest.bit_length() + 1).tolist()
        return grids


def _last(fmt: Format) -> int:
    """All values of a format are multiples of two to this power."""
    return int(np.log2(fmt.smallest_subnormal if fmt.subnormals else fmt.tiny * 2.0**-fmt.mantissa_bits))


def shift_of(knob: str) -> int:
    """The lowest bit of a knob in a rule."""
    return KNOBS[knob].shift
