"""What handlers of NumPy's functions share: how they are entered, operands, `out`, axes that are reduced, places of traps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits, engine
from softfloat.arrays.held import FUNCTIONS, wrapped
from softfloat.arrays.operands import coerced, common_format
from softfloat.arrays.softarray import SoftArray
from softfloat.engine import Codes, folds
from softfloat.environments import WATCHES, current_environment
from softfloat.formats import Format
from softfloat.status import FloatingPointTrap

ABSENT = np._NoValue if hasattr(np, "_NoValue") else object()

Handler = Callable[..., Any]


def implements(*functions: Any, mixed: bool = False) -> Callable[[Handler], Handler]:
    """Register what stands in for some of NumPy's functions; their first argument is the SoftArray, unless `mixed`."""

    def register(handler: Handler) -> Handler:
        @wraps(handler)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            own = arguments[0] if arguments else next(iter(keywords.values()), None)
            if not isinstance(own, SoftArray):
                raise TypeError(f"numpy.{functions[0].__name__} of {type(own).__name__} takes no SoftArray")
            return handler(*arguments, **keywords)

        for function in functions:
            FUNCTIONS[function] = handler if mixed else checked
        return handler

    return register


def named(*names: str) -> list[Any]:
    """The functions of these names that this NumPy has."""
    found = []
    for name in names:
        owner: Any = np
        for part in name.split("."):
            owner = getattr(owner, part, None)
        if owner is not None:
            found.append(owner)
    return found


def refuse(function: str, **arguments: Any) -> None:
    """TypeError for arguments that were given although they have no meaning here."""
    for name, value in arguments.items():
        if value is not None and value is not ABSENT and not (name == "where" and value is True):
            raise TypeError(f"numpy.{function} of a SoftArray takes no {name}=")


def check_dtype(function: str, dtype: Any, fmt: Format) -> None:
    """A dtype may be named only as the array's own format."""
    if dtype is not None and dtype != fmt and dtype != fmt.name:
        raise TypeError(
            f"numpy.{function} of a SoftArray of {fmt} stays in {fmt}, got dtype={dtype!r}; astype() converts"
        )


def placed(result: Any, out: Any, function: str) -> Any:
    """A result, or the array given for it, filled."""
    if isinstance(out, tuple):
        (out,) = out
    if out is None:
        return result
    if isinstance(result, SoftArray):
        if not isinstance(out, SoftArray) or out.format != result.format or out.shape != result.shape:
            found = f"{out.format} of shape {out.shape}" if isinstance(out, SoftArray) else type(out).__name__
            raise TypeError(
                f"out of numpy.{function} must be a SoftArray of {result.format} and shape {result.shape}, got {found}"
            )
        out.codes[...] = result.codes
        return out
    if not isinstance(out, np.ndarray) or out.shape != np.shape(result):
        raise TypeError(
            f"out of numpy.{function} must be an array of {np.asarray(result).dtype} and shape {np.shape(result)}"
        )
    np.copyto(out, result, casting="same_kind")
    return out


def paired(function: str, a: Any, b: Any) -> tuple[SoftArray, SoftArray, Format]:
    """Two operands of one format."""
    fmt = common_format([a, b], function)
    return wrapped(coerced(a, fmt, function, 0), fmt), wrapped(coerced(b, fmt, function, 1), fmt), fmt


def as_soft(x: Any, fmt: Format, function: str) -> SoftArray:
    """An operand as a SoftArray of a format."""
    return x if isinstance(x, SoftArray) and x.format == fmt else wrapped(coerced(x, fmt, function), fmt)


def relocated(
    place: Callable[..., tuple[int, ...]], *known: Any, name: str | None = None
) -> AbstractContextManager[None]:
    """A trap names where the element is in the result that the caller sees: place(its index, *known)."""
    return _relocated(place, known, name) if current_environment().traps else UNTRAPPED


UNTRAPPED = nullcontext()


@contextmanager
def _relocated(place: Callable[..., tuple[int, ...]], known: tuple[Any, ...], name: str | None) -> Iterator[None]:
    try:
        yield
    except FloatingPointTrap as trap:
        raise trap.moved(place(trap.index, *known), name) from None


def arranged(shape: Sequence[int], arrange: Callable[[Codes], Codes]) -> AbstractContextManager[None]:
    """`relocated`, among results of a shape that `arrange` brings into their final order."""

    def place(index: tuple[int, ...]) -> tuple[int, ...]:
        numbers = np.arange(math.prod(shape)).reshape(shape)
        return tuple(np.argwhere(arrange(numbers) == numbers[index])[0].tolist())

    return relocated(place)


def keeping(codes: Codes, kept: Sequence[int], keepdims: Any) -> AbstractContextManager[None]:
    """A trap in a reduction of the last axis names its place among all axes if they are kept."""
    keep = keepdims is not ABSENT and bool(keepdims)
    return arranged(codes.shape[:-1], lambda found: found.reshape(kept) if keep else found)


def laid_out(codes: Codes, axis: Any) -> tuple[Codes, tuple[int, ...]]:
    """(codes with the axes to reduce last and as one, the shape with ones in their place)."""
    if axis is None:
        return codes.reshape(-1), (1,) * codes.ndim
    axes = np.lib.array_utils.normalize_axis_tuple(axis, codes.ndim)
    others = [i for i in range(codes.ndim) if i not in axes]
    kept = tuple(1 if i in axes else n for i, n in enumerate(codes.shape))
    arranged = codes.transpose(*others, *sorted(axes))
    count = math.prod(codes.shape[i] for i in axes)
    return arranged.reshape(*(codes.shape[i] for i in others), count), kept


def begun(codes: Codes, initial: Any, fmt: Format, name: str) -> Codes:
    """Codes with a first element before those of the last axis, if there is one."""
    if initial is ABSENT or initial is None:
        return codes
    first = np.broadcast_to(coerced(initial, fmt, name), (*codes.shape[:-1], 1))
    return np.concatenate([first, codes], axis=-1)


def by_lanes(
    function: Handler, name: str, a: SoftArray, axis: Any, mask: Any, keepdims: Any, *arguments: Any, **keywords: Any
) -> SoftArray:
    """A reduction of the elements where a mask holds, results of equally many at once."""
    codes, kept = laid_out(a.codes, axis)
    chosen = laid_out(np.broadcast_to(truth(mask), a.shape), axis)[0]
    flat = math.prod(codes.shape[:-1]), codes.shape[-1]
    initial = keywords.get("initial")
    if initial is not None and initial is not ABSENT:
        keywords["initial"] = as_soft(initial, a.format, name)  # once, and a trap has no place then
    lanes, masks = codes.reshape(flat), chosen.reshape(flat)
    found = []
    with keeping(codes, kept, keepdims):
        for count, places in alike(np.count_nonzero(masks, axis=-1)) if flat[0] else [(flat[1], np.arange(0))]:
            some = wrapped(lanes[places][masks[places]].reshape(len(places), count), a.format)
            with relocated(unravelled, places, codes.shape[:-1], name=name):
                found.append((places, function(some, *arguments, axis=-1, **keywords).codes))
    results = np.empty((*found[0][1].shape[:-1], len(lanes)), a.format.dtype)
    for places, part in found:
        results[..., places] = part
    results = results.reshape(results.shape[:-1] + codes.shape[:-1])
    return restored(results, kept, keepdims, a.format, results.ndim - codes.ndim + 1)


def unravelled(index: tuple[int, ...], places: Codes, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where one of some elements, whose places among all are known, is in these."""
    return tuple(int(i) for i in np.unravel_index(places[index[0]], shape))


def alike(lengths: Any) -> Iterator[tuple[int, Any]]:
    """(a length, the places that have it) of each, in the order in which they first come."""
    found, first = np.unique(lengths, return_index=True)
    for length in lengths[np.sort(first)] if found.size > 1 else found:
        yield int(length), np.flatnonzero(lengths == length)


def restored(codes: Any, kept: tuple[int, ...], keepdims: Any, fmt: Format, more: int = 0) -> SoftArray:
    """A reduction's result, with the reduced axes where they were if wanted; `more` axes stand before all."""
    codes = np.asarray(codes)
    keep = keepdims is not ABSENT and bool(keepdims)
    return wrapped(codes.reshape(codes.shape[:more] + kept) if keep else codes, fmt)


def truth(x: Any) -> Any:
    """Whether each element counts as true."""
    engine.refuse_mask(x, "a condition")
    return ~bits.iszero(x.codes, x.format) if isinstance(x, SoftArray) else np.asarray(x, bool)


def each_within(x: Any) -> Iterable[Any]:
    """Everything in nested lists."""
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from each_within(item)
    else:
        yield x


# -- folds -----------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """What a fold does again and again: compute(x, y) makes codes of codes; `operation` is its name in `softfloat.bits`, if it has one."""

    fmt: Format
    compute: Callable[[Codes, Codes], Codes]
    operation: str = ""


def folded(codes: Codes, step: Step, keep: bool) -> Codes:
    """An operation along the last axis, one element after the other; with all steps if `keep`."""
    found = _folded_at_once(codes, step, keep)
    if found is not None:
        return found
    state = codes[..., 0]
    steps = [state]
    for k in range(1, codes.shape[-1]):
        with relocated(lambda index, step: (*index, step) if keep else index, k):
            state = np.asarray(step.compute(state, codes[..., k]))
        if keep:
            steps.append(state)
    return np.stack(steps, axis=-1) if keep else state


def _folded_at_once(codes: Codes, step: Step, keep: bool) -> Codes | None:
    """The same in one loop; None where that does not serve, random numbers need places, or a trap needs the step's."""
    env = current_environment()
    settings = env.settings.for_format(step.fmt.name)
    shape, rows = codes.shape[:-1], codes.reshape(-1, codes.shape[-1]).T
    if env.position is not None or WATCHES or not folds.serves(step.operation, rows, step.fmt, settings):
        return None
    streams, trapped = env.streams.take_many(rows.shape[0] - 1), True
    try:
        steps, flags = folds.fold(step.operation, rows, step.fmt, settings, streams, keep)
        raised = int(np.bitwise_or.reduce(flags))
        trapped = bool(raised & env.traps)  # type: ignore[operator]
    finally:
        if trapped:
            for number in reversed(streams):
                env.streams.give_back(number)
    if trapped:
        return None
    env.status.add(raised)
    return steps.T.reshape(codes.shape) if keep else steps.reshape(shape)
