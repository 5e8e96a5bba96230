"""Looking at tensors while a model trains: printed by name, recorded step by step, gradients counted by their exponents.

Nothing here computes with a tensor: values are copied or read as codes. Within `emulate` no random number is taken and
no flag raised, and a training that is looked at has the bits of one that is not.

>>> import torch
>>> from softfloat.torch.practices.inspection import Outfeed, gradient_statistics, print_tensor
>>> x = torch.tensor([0.5, 2.0, 0.0, 2**-24], dtype=torch.float16, requires_grad=True)
>>> print_tensor(x, "x").float().sum().backward()
x: (4,) float16, 0 to 2, mean magnitude 0.625; 1 zero, 1 subnormal, 0 infinite, 0 NaN: 0.5 2 0 5.96046e-08
x_grad: (4,) float16, 1 to 1, mean magnitude 1; 0 zero, 0 subnormal, 0 infinite, 0 NaN: 1 1 1 1
>>> layer = torch.nn.Linear(2, 1)
>>> with Outfeed(layer, activations=False, gradients=False, parameters=True) as feed:
...     (layer(torch.tensor([[2.0**-10, 2.0**-30]])).sum()).backward()
>>> found = gradient_statistics(feed.dequeue())
>>> found.count, found.exponents.tolist(), found.counts.tolist(), found.below_smallest
(3, [-30, -10, 0], [1, 1, 1], 0.3333333333333333)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import torch

from softfloat import bits, markup
from softfloat.checks import is_integer
from softfloat.display import ExponentShares, exponent_histogram, exponent_shares
from softfloat.display.measures import check_factor
from softfloat.formats import Format, check_format
from softfloat.markup import grouped
from softfloat.torch.operators.bridge import numbers_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["GradientStatistics", "Outfeed", "gradient_statistics", "print_tensor"]

Numbers = np.ndarray[Any, np.dtype[Any]]
GRADIENT = "_grad"


def _read(tensor: torch.Tensor) -> tuple[Numbers, Format | None]:
    """(codes, format) of tensors in a narrow format, (numbers, None) of others."""
    if tensor.layout != torch.strided:
        raise TypeError(f"tensors must be dense, got one laid out as {tensor.layout}")
    if tensor.dtype == torch.complex32:
        raise TypeError("tensors must have a dtype other than torch.complex32; read their real and imaginary parts")
    return numbers_of(tensor.detach().cpu().resolve_conj().resolve_neg())


def _on_gradient(tensor: torch.Tensor, take: Callable[[torch.Tensor], None]) -> None:
    """Call `take` with the tensor's gradient; once, for a leaf, which outlives the graph."""
    if not (torch.is_grad_enabled() and tensor.requires_grad):
        return

    def hook(gradient: torch.Tensor) -> None:
        if tensor_is_leaf:
            handle.remove()
        take(gradient)

    tensor_is_leaf = tensor.is_leaf  # not the tensor itself, which would be held by its own hook
    handle = tensor.register_hook(hook)


# -- printing --------------------------------------------------------------------------------------------------------


def print_tensor(x: torch.Tensor, name: str = "", *, file: TextIO | None = None, summarize: int = 3) -> torch.Tensor:
    """Print a tensor, and its gradient as `<name>_grad` when backward has it; returns the tensor itself.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    name : str
    file : text file, optional
        None: standard output.
    summarize : int
        How many of the first and of the last values are printed; -1: all, 0: none.

    Returns
    -------
    Tensor
        `x`. Uses of `x` itself count in the gradient, too.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    A line gives shape, dtype, the least and the greatest finite value, the mean magnitude of the finite ones, counts of
    zeros, subnormal, infinite and NaN elements, and values. Graphcore's `ipu.internal_ops.print_tensor` does
    the same on the device.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x must be a torch.Tensor, got {type(x).__name__}")
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, got {type(name).__name__}")
    if not is_integer(summarize) or summarize < -1:
        raise ValueError(f"summarize must be an integer from -1 on, got {summarize!r}")
    print(_line(name, x, summarize), file=file)
    _on_gradient(x, lambda gradient: print(_line(name + GRADIENT, gradient, summarize), file=file))
    return x


def _line(name: str, tensor: torch.Tensor, summarize: int) -> str:
    """What `print_tensor` prints."""
    read, fmt = _read(tensor)
    numbers = np.asarray(read if fmt is None else bits.decode(read, fmt))
    head = f"{name or 'tensor'}: {tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
    if not numbers.size:
        return f"{head}, empty"
    inexact = np.issubdtype(numbers.dtype, np.inexact)
    finite = numbers[np.isfinite(numbers)]
    if finite.size:
        if not np.iscomplexobj(numbers):
            head += f", {_number(finite.min())} to {_number(finite.max())}"
        with np.errstate(over="ignore"):
            magnitude = np.abs(finite.astype(np.complex128 if np.iscomplexobj(numbers) else np.float64)).mean()
        head += f", mean magnitude {_number(magnitude)}"
    head += f"; {int((numbers == 0).sum())} zero"
    if inexact:
        small = (
            (np.abs(numbers) < np.finfo(numbers.dtype).tiny) & (numbers != 0)
            if fmt is None
            else bits.issubnormal(read, fmt)
        )
        counts = (int(np.sum(found)) for found in (small, np.isinf(numbers), np.isnan(numbers)))
        head += "".join(
            f", {count} {kind}" for count, kind in zip(counts, ("subnormal", "infinite", "NaN"), strict=True)
        )
    flat, texts = numbers.reshape(-1), []
    if summarize < 0 or 2 * summarize >= flat.size:
        texts = [_number(x) for x in flat.tolist()]
    elif summarize:
        texts = [*map(_number, flat[:summarize].tolist()), "...", *map(_number, flat[-summarize:].tolist())]
    return head + (f": {' '.join(texts)}" if texts else "")


def _number(x: Any) -> str:
    return f"{x:.6g}" if not isinstance(x, (bool, int, np.bool_, np.integer)) else str(x)


# -- recording -------------------------------------------------------------------------------------------------------


class Outfeed:
    """A queue that activations and gradients of a model go to by name, a dictionary for each step.

    Parameters
    ----------
    model : Module, optional
        Whose modules, all that `named_modules` lists, are watched from now on. None: only what `outfeed` is given.
    filters : sequence of str, optional
        Names are recorded that contain one of them. None: all.
    activations : bool
        Record the outputs of modules under their names; that of the model itself under the name of its class.
    gradients : bool
        Record the gradients of outputs, and of what `outfeed` is given, as `<name>_grad`.
    parameters : bool
        Record what each backward pass has for the parameters as `<parameter>_grad`, in the order it is made, which is
        the reverse of the forward pass. Gradients accumulated in `.grad` before do not count.

    Raises
    ------
    TypeError
        Naming the argument.

    Notes
    -----
    Tensors are copies in their own dtype. What comes again within a step, as the output of a module that is called
    twice, is `<name>#2`, `<name>#3`, with gradients `<name>#2_grad`. Outputs in tuples, lists and dictionaries
    have the place behind the name: those of an LSTM are `lstm[0]`, `lstm[1][0]` and `lstm[1][1]`.

    Used as a context, modules are watched until its end, else until `remove`; what was recorded stays.

    After Graphcore's `MaybeOutfeedQueue` (`filters`, `maybe_outfeed`, `maybe_enqueue`, `maybe_dequeue`) and
    `OutfeedOptimizer` (`<variable>_grad`).

    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU())
    >>> with Outfeed(model, filters=["0"], parameters=True) as feed:
    ...     for _ in range(2):
    ...         model(torch.ones(1, 1)).sum().backward()
    ...         feed.enqueue()
    >>> {name: len(tensors) for name, tensors in feed.dequeue().items()}
    {'0': 2, '0_grad': 2, '0.bias_grad': 2, '0.weight_grad': 2}
    """

    def __init__(
        self,
        model: torch.nn.Module | None = None,
        *,
        filters: Sequence[str] | None = None,
        activations: bool = True,
        gradients: bool = True,
        parameters: bool = False,
    ) -> None:
        if model is not None and not isinstance(model, torch.nn.Module):
            raise TypeError(f"model must be a torch.nn.Module or None, got {type(model).__name__}")
        if filters is not None and (isinstance(filters, str) or not all(isinstance(x, str) for x in filters)):
            raise TypeError(f"filters must be a sequence of str or None, got {filters!r}")
        self._filters = None if filters is None else tuple(filters)
        self._activations, self._gradients = activations, gradients
        self._steps: list[dict[str, torch.Tensor]] = []
        self._step: dict[str, torch.Tensor] = {}
        self._seen: dict[str, int] = {}
        self._watching = True
        self._handles: list[Any] = []
        if model is None:
            return
        if activations or gradients:
            for name, module in model.named_modules():
                self._handles.append(module.register_forward_hook(self._hook(name or type(model).__name__)))
        if parameters:
            for name, parameter in model.named_parameters():
                if parameter.requires_grad:
                    self._handles.append(parameter.register_hook(self._taker(name + GRADIENT)))

    def __enter__(self) -> Outfeed:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Watch no longer, gradients of what was watched included; what was recorded stays."""
        self._watching = False
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def outfeed(self, key: str, tensor: torch.Tensor) -> torch.Tensor:
        """Record a tensor under a name, if the filters let it pass, and its gradient; returns the tensor itself."""
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"tensor must be a torch.Tensor, got {type(tensor).__name__}")
        self._watch(key, tensor, True)
        return tensor

    def enqueue(self) -> None:
        """The step ends: what comes next belongs to another."""
        if self._step:
            self._steps.append(self._step)
        self._step, self._seen = {}, {}

    def dequeue(self) -> dict[str, list[torch.Tensor]]:
        """Everything recorded, by name in the order of recording, one tensor for each step that has it; the queue is empty then.

        What came since the last `enqueue` is a step, too.
        """
        self.enqueue()
        found: dict[str, list[torch.Tensor]] = {}
        for step in self._steps:
            for name, tensor in step.items():
                found.setdefault(name, []).append(tensor)
        self._steps = []
        return found

    def clear(self) -> None:
        """Forget everything recorded."""
        self.dequeue()

    # -- hooks -------------------------------------------------------------------------------------------------------

    def _hook(self, name: str) -> Callable[[Any, Any, Any], None]:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            for place, tensor in _leaves(output) if self._watching else ():  # copies of a model keep its hooks
                self._watch(name + place, tensor, self._activations)

        return hook

    def _watch(self, name: str, tensor: torch.Tensor, value: bool) -> None:
        key = self._again(name)
        if value and self._passes(key):
            self._record(key, tensor)
        if self._gradients and self._passes(key + GRADIENT):
            _on_gradient(tensor, self._taker(key + GRADIENT))

    def _taker(self, name: str) -> Callable[[torch.Tensor], None]:
        def take(gradient: torch.Tensor) -> None:
            if self._watching and self._passes(name):
                self._record(self._again(name), gradient)

        return take

    def _again(self, name: str) -> str:
        """The name under which something is recorded that may have been recorded in this step already."""
        self._seen[name] = count = self._seen.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    def _passes(self, name: str) -> bool:
        return self._filters is None or any(part in name for part in self._filters)

    def _record(self, name: str, tensor: torch.Tensor) -> None:
        self._step[name] = tensor.detach().clone()


def _leaves(output: Any, place: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors of a module's output, and where they are in it."""
    if isinstance(output, torch.Tensor):
        yield place, output
    elif isinstance(output, Mapping):
        for key, value in output.items():
            yield from _leaves(value, f"{place}[{key}]")
    elif isinstance(output, (tuple, list)):
        for i, value in enumerate(output):
            yield from _leaves(value, f"{place}[{i}]")


# -- counting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GradientStatistics(markup.Tabled):
    """How large gradients are, and how many of them a format would lose; `print`, consoles and notebooks show it as a table.

    Attributes
    ----------
    format : Format
    scale : float
        A loss scale that the gradients are multiplied by before anything but `magnitudes` is counted.
    zeros, nonfinite : int
        Of the gradients.
    magnitudes : array of float64
        Those of the others, unscaled: each once, from the least to the greatest.
    multiplicities : array of int64
        How often each occurs.
    parts : dict of str to GradientStatistics
        By the tensors' names; empty in a part. The whole counts them all.

    Notes
    -----
    Statistics of several steps add up with `+` and `sum`. They grow with the number of different magnitudes: there
    are 31 743 in half, and up to as many as gradients in float32.
    """

    format: Format
    scale: float
    zeros: int
    nonfinite: int
    magnitudes: Numbers = field(repr=False)
    multiplicities: Numbers = field(repr=False)
    parts: dict[str, GradientStatistics] = field(default_factory=dict, repr=False)

    @property
    def nonzero(self) -> int:
        """How many gradients are finite and not zero."""
        return int(self.multiplicities.sum())

    @property
    def count(self) -> int:
        """How many gradients there are."""
        return self.zeros + self.nonfinite + self.nonzero

    @property
    def zero_share(self) -> float:
        """The share of all gradients that are zero; 0 of none."""
        return self.zeros / self.count if self.count else 0.0

    @property
    def smallest(self) -> float:
        """The format's smallest positive number: 2^-24 in half."""
        return float(self.format.smallest_subnormal)

    @property
    def below_smallest(self) -> float:
        """The share of the nonzero gradients whose magnitude times the scale is less than `smallest`: 2^-24 in half."""
        return self._below(self.smallest)

    @property
    def below_half(self) -> float:
        """The share of the nonzero gradients whose magnitude times the scale is less than half of `smallest`: 2^-25 in half.

        They round to zero to nearest. So does what is exactly half, a tie to even, which is not counted here, but is in
        `shares().underflow`.
        """
        return self._below(self.smallest / 2)

    @property
    def exponents(self) -> Numbers:
        """The values of floor(log2(magnitude)) that occur among the nonzero gradients times the scale, from the least on."""
        return np.unique(self._exponents())

    @property
    def counts(self) -> Numbers:
        """How many gradients have each of `exponents`."""
        return _distinct([self._exponents()], [self.multiplicities])[1]

    def shares(self, scale: float | None = None) -> ExponentShares:
        """What becomes of the gradients, times a scale (None: that of the statistics), rounded to the format to nearest even."""
        return exponent_shares(self._all(), self.format, self.scale if scale is None else scale)

    def figure(self, scales: Sequence[float] | None = None) -> Figure:
        """`softfloat.display.exponent_histogram` of the gradients: a panel for each scale; None: that of the statistics.

        Raises
        ------
        ValueError
            If all are zero or not finite, or the scales are not 1 to 6 positive numbers.
        ImportError
            Without matplotlib.
        """
        return exponent_histogram(self._all(), self.format, (self.scale,) if scales is None else scales)

    def __add__(self, other: Any) -> GradientStatistics:
        if not isinstance(other, GradientStatistics):
            return NotImplemented
        if (self.format, self.scale) != (other.format, other.scale):
            raise ValueError(
                f"statistics must have one format and scale, got {self.format} at {self.scale:g} and "
                f"{other.format} at {other.scale:g}"
            )
        return _united([self, other])

    def __radd__(self, other: Any) -> GradientStatistics:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # where `sum` starts

    _left = 1

    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        """Title, headings, rows."""
        exponent = np.frexp(self.smallest)[1] - 1
        title = "gradients" + (f" times {self.scale:g}" if self.scale != 1 else "") + f" in {self.format.name}"
        headings = ["name", "numbers", "zero", f"< 2^{exponent}", f"< 2^{exponent - 1}", "not finite", "exponents"]
        return title, headings, [part._row(name) for name, part in [*self.parts.items(), ("all", self)]]

    def _row(self, name: str) -> list[str]:
        shares = [f"{100 * share:.3g} %" for share in (self.zero_share, self.below_smallest, self.below_half)]
        exponents = self._exponents()
        span = f"{exponents.min()} to {exponents.max()}" if exponents.size else ""
        return [name, grouped(self.count), *shares, grouped(self.nonfinite), span]

    def _scaled(self) -> Numbers:
        with np.errstate(over="ignore", under="ignore"):
            scaled: Numbers = np.clip(self.magnitudes * self.scale, 2.0**-1074, np.finfo(np.float64).max)
        return scaled

    def _exponents(self) -> Numbers:
        return np.frexp(self._scaled())[1].astype(np.int64) - 1

    def _below(self, bound: float) -> float:
        lost = int(self.multiplicities[self._scaled() < bound].sum())
        return lost / self.nonzero if lost else 0.0

    def _all(self) -> Numbers:
        """A magnitude for each gradient; NaN for one that is not finite."""
        ends, often = [0.0, np.nan], [self.zeros, self.nonfinite]
        return np.repeat(np.append(self.magnitudes, ends), np.append(self.multiplicities, often))


Gradients = Any
"""A module, a dictionary of names and tensors or lists of them, tensors, or a tensor."""


def gradient_statistics(
    gradients: Gradients, *, scale: float = 1.0, format: Format | str = "float16"
) -> GradientStatistics:
    """Count gradients by their magnitudes: how many are zero, and how many a format would lose.

    Parameters
    ----------
    gradients : Module, mapping of str to tensors, iterable of tensors, or Tensor
        Of a module the `.grad` of its parameters, by their names. In a mapping a value may be a list of tensors, as
        `Outfeed.dequeue` returns them. Tensors of an iterable are named by their place. Arrays do as well.
    scale : float
        A loss scale to try: positive; gradients are multiplied by it in float64.
    format : Format
        The one that the gradients are to fit.

    Returns
    -------
    GradientStatistics
        Of all of them, and of each name.

    Raises
    ------
    TypeError, ValueError
        Naming the argument; if a module has no gradients.

    Notes
    -----
    Half has no positive number below 2^-24, and rounds to zero what is 2^-25 or less. Gradients that are in half
    already have lost what there was to lose; it is those in float32 that tell which loss scale they would need.

    >>> found = gradient_statistics([torch.tensor([0.0, 1.0, 2.0**-24, 2.0**-25, 2.0**-26])])
    >>> found.zero_share, found.below_smallest, found.below_half
    (0.2, 0.5, 0.25)
    >>> found = gradient_statistics([torch.tensor([0.0, 1.0, 2.0**-24, 2.0**-25, 2.0**-26])], scale=4)
    >>> found.below_smallest, found.exponents[[0, -1]].tolist()
    (0.0, [-24, 2])
    """
    fmt, factor = check_format(format, "format", what="gradient_statistics"), check_factor(scale)
    parts = {name: _counted(list(tensors), fmt, factor) for name, tensors in _named(gradients)}
    whole = _united([GradientStatistics(fmt, factor, 0, 0, *_distinct([], [])), *parts.values()])
    return GradientStatistics(fmt, factor, whole.zeros, whole.nonfinite, whole.magnitudes, whole.multiplicities, parts)


def _named(gradients: Gradients) -> Iterator[tuple[str, Iterable[Any]]]:
    """Names, and the tensors they stand for."""
    if isinstance(gradients, torch.nn.Module):
        found = [(name, [p.grad]) for name, p in gradients.named_parameters() if p.grad is not None]
        if not found:
            raise ValueError("gradients must be those of a module that has some; call backward() first")
        yield from found
    elif isinstance(gradients, Mapping):
        for name, value in gradients.items():
            yield str(name), [value] if isinstance(value, (torch.Tensor, np.ndarray)) else value
    elif isinstance(gradients, (torch.Tensor, np.ndarray)):
        yield "0", [gradients]
    elif isinstance(gradients, Iterable) and not isinstance(gradients, (str, bytes)):
        for i, value in enumerate(gradients):
            yield str(i), [value]
    else:
        raise TypeError(
            "gradients must be a torch.nn.Module, a mapping of names to tensors, an iterable of tensors, or a tensor, "
            f"got {type(gradients).__name__}"
        )


def _counted(tensors: Sequence[Any], fmt: Format, scale: float) -> GradientStatistics:
    """Statistics of some tensors together."""
    zeros = nonfinite = 0
    magnitudes = []
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor):
            if not tensor.is_floating_point():
                raise TypeError(f"gradients must be of floating point, got a tensor of {tensor.dtype}")
            read, source = _read(tensor)
            numbers = np.asarray(read if source is None else bits.decode(read, source), np.float64)
        elif isinstance(tensor, np.ndarray):
            numbers = tensor.astype(np.float64)
        else:
            raise TypeError(f"gradients must consist of tensors, got {type(tensor).__name__}")
        finite = np.isfinite(numbers)
        nonfinite += int(numbers.size - finite.sum())
        zeros += int((numbers == 0).sum())
        magnitudes.append(np.abs(numbers[finite & (numbers != 0)]))
    return GradientStatistics(
        fmt, scale, zeros, nonfinite, *_distinct(magnitudes, [np.ones(x.size, np.int64) for x in magnitudes])
    )


def _distinct(numbers: Sequence[Numbers], multiplicities: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    """Each number once, from the least to the greatest, and how often it occurs."""
    found, places = np.unique(np.concatenate([np.zeros(0), *numbers]), return_inverse=True)
    weights = np.concatenate([np.zeros(0, np.int64), *multiplicities])
    return found, np.bincount(places.reshape(-1), weights, minlength=found.size).astype(np.int64)


def _united(all_of: Sequence[GradientStatistics]) -> GradientStatistics:
    """Statistics of what several are of; parts of one name become one."""
    first = all_of[0]
    names = dict.fromkeys(name for one in all_of for name in one.parts)
    return GradientStatistics(
        first.format,
        first.scale,
        sum(one.zeros for one in all_of),
        sum(one.nonfinite for one in all_of),
        *_distinct([one.magnitudes for one in all_of], [one.multiplicities for one in all_of]),
        {name: _united([one.parts[name] for one in all_of if name in one.parts]) for name in names},
    )
