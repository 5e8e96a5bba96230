"""`emulate`: the context in which low-precision tensors compute with `softfloat.bits`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ContextDecorator, ExitStack
from typing import Any

from softfloat.accumulators import Accumulator
from softfloat.checks import check_switch
from softfloat.environments import Environment
from softfloat.formats import Format
from softfloat.torch import private
from softfloat.torch.operators.bridge import FORMATS, NARROW, UnsupportedArguments
from softfloat.torch.operators.devices import REFUSE, DeviceProduct, check_device, check_settings
from softfloat.torch.operators.plans import between, computes, involved, on_device, opaque, planned, quantises, touches
from softfloat.torch.operators.recipes import Choice, Quantising, ScalingReport, check_choices
from softfloat.torch.operators.tables import ADVICE
from softfloat.torch.operators.unit import Operation, Tally, Unit, check_environment, place

__all__ = ["UnemulatedOperatorError", "emulate"]


class UnemulatedOperatorError(NotImplementedError):
    """An operator on low-precision tensors that is not emulated. It did not run.

    Attributes
    ----------
    operator, module, backward
        As in `Operation`.
    """

    def __init__(self, reason: str, operator: str = "", module: str = "", backward: bool = False) -> None:
        self.reason, self.operator, self.module, self.backward = reason, operator, module, backward
        super().__init__(reason, operator, module, backward)

    def __str__(self) -> str:
        return f"{self.reason} ({place(self.operator, self.module, self.backward)})" if self.operator else self.reason


TRACED = "emulate computes operators, which a trace records; trace outside of emulate, and run inside what was traced"


class _Session:
    """One opening of an emulation."""

    def __init__(self, unit: Unit) -> None:
        self.unit, self.open = unit, True

    def close(self) -> None:
        self.open = False

    def refuse_compiled(self) -> None:
        raise UnemulatedOperatorError(
            "emulate does not see the operators of compiled code; call the module or function that torch.compile was "
            "given, or torch.compiler.set_stance('force_eager')"
        )

    def refuse_traced(self) -> None:
        raise UnemulatedOperatorError(TRACED)

    def refuse_mapped(self, dtype: Any) -> None:
        if dtype in NARROW:
            raise UnemulatedOperatorError(
                f"emulate does not see what apply_, map_ and map2_ store in {dtype} tensors; use operators, or float32"
            )

    def assigned(self, value: float, dtype: Any) -> float:
        if dtype not in NARROW or dtype not in FORMATS or isinstance(value, bool):
            return value
        return self.unit.rounded_number(value, FORMATS[dtype].format)

    def checkpointed(self, region: private.Region) -> AbstractContextManager[None]:
        return self.unit.running(region)

    def elsewhere(self) -> AbstractContextManager[Any]:
        return _Elsewhere(self)

    def takes_apart(self) -> bool:
        return self.unit.quantising is not None

    def widened(self, arguments: Iterable[Any]) -> AbstractContextManager[bool]:
        return self.unit.widening(involved(arguments))


class _Elsewhere(private.DispatchMode):
    """In a thread that a block started: the emulation, whose operations are numbered in order, cannot be the thread's too."""

    def __init__(self, session: _Session) -> None:
        super().__init__()
        self._session = session

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        unit = self._session.unit
        works = computes(func, args, kwargs) or (unit.quantising is not None and quantises(func))
        if self._session.open and private.innermost() is None and works:
            raise UnemulatedOperatorError(
                "emulate does not reach threads that its block starts; open another, with an environment of its own, "
                "in the thread",
                str(func),
            )
        return NotImplemented if private.dispatching(types) else func(*args, **kwargs)


class _Mode(private.DispatchMode):
    """Where PyTorch hands over every operator, below autograd."""

    def __init__(self, unit: Unit) -> None:
        super().__init__()
        self._unit = unit

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        unit, kwargs = self._unit, kwargs or {}
        plan = planned(func)
        outer, unit.operator = unit.operator, func
        try:
            if types or private.modes_below():
                others = private.dispatching(types)
                tracer = private.tracer(others)
                if tracer or others:
                    return self._strange(tracer, func, others, args, kwargs)
            if unit.device is not None:
                plan = on_device(unit, func, args, kwargs, plan)
            if (unit.widens or private.in_widened()) and not touches(args, kwargs):
                return between(unit, func, args, kwargs)
            if plan is not None:
                return plan(unit, func, args, kwargs)
            return self._other(func, args, kwargs)
        except UnsupportedArguments as reason:
            raise UnemulatedOperatorError(str(reason), *unit.where()) from None
        finally:
            unit.operator = outer

    def _strange(self, tracer: str, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Tensors without numbers, which cannot be computed with, and those that consist of others."""
        if private.asks(func) and planned(func) is None:
            return NotImplemented if types else func(*args, **kwargs)
        if tracer:
            result = None if touches(args, kwargs) else func(*args, **kwargs)
            if result is not None and not involved([result]):
                return result
            raise UnsupportedArguments(f"{tracer} is part of a trace: {TRACED}")
        for kind in types:
            if not private.takes_itself_apart(kind) and touches(args, kwargs):
                raise UnsupportedArguments(
                    f"{kind.__name__} computes in a __torch_dispatch__ of its own; take its plain tensors first"
                )
        return NotImplemented  # the class is asked next, and this mode for the operators that it calls

    def _other(self, func: Any, args: Any, kwargs: Any) -> Any:
        """In parts if it has any and they may matter; else native where no narrow tensor comes in or goes out; else refused.

        Where products are quantised, or a device's, all parts may matter.
        """
        touched, quantising = touches(args, kwargs), self._unit.quantising is not None
        parts = private.decomposition(func) if touched or quantising or self._unit.device is not None else None
        if parts is not None:
            with self:
                return parts(*args, **kwargs)
        if quantising:
            opaque(self._unit, func, args, kwargs)
        if not touched:
            result = func(*args, **kwargs)
            if not involved([result]):
                return result
        elif private.asks(func):
            return func(*args, **kwargs)
        name = private.schema_name(func)
        advice = ADVICE.get(name) or ADVICE.get(name.removesuffix("_")) or "cast its operands to float32 first"
        raise UnsupportedArguments(f"{func} has no emulation for low-precision tensors; {advice}")


class emulate(ContextDecorator):
    """Within it, operators on float16 and bfloat16 tensors compute in emulated arithmetic, those of backward passes and optimisers too.

    Parameters
    ----------
    environment : Environment, optional
        How to round, what overflow does, which flags trap. Its status collects the flags; its count of operations
        addresses random numbers. None: the one in force, looked up anew for each operation.
    matmul, convolution : Accumulator, or callable from Format to Accumulator, optional
        How products are summed. None: the environment's `accumulator`, else `fma("float32")`, which is one fused
        multiply-add in single for each k, to nearest even where rounding is stochastic. The sum is rounded to the
        tensors' format at the end.
    record : bool, or callable
        Keep every `Operation` in `trace`, or call this with it. Costs a copy of all operands.
    use_stable_statistics : bool
        True: norms are PyTorch's, which subtract the mean before they square (group norm of channels-last tensors does
        not). False, Graphcore's default: the variance of float16 and bfloat16 tensors is the mean of squares less the
        square of the mean, in float32, and not below zero. It loses its digits where the mean is far greater than the
        deviation; with a mean of squares in half, as the device may have it, it would overflow too.
    count : bool
        Keep `tallies`, and count in `scalings`. Costs most of the speed: sums are added up by the loop that can look at each
        addition.
    quantize : Recipe, str, mapping or callable, optional
        A recipe of `softfloat.scaling`, or its name: matrix products and convolutions quantise their operands, forward and
        backward, as it says. A mapping has recipes, or None, by patterns of modules' names, those of `named_modules()` of the
        module that is called ("layers.*", "head"; "" is that module itself, and what is outside of modules). The first
        that fits counts; what fits none is left alone. A function gets the name. float32 tensors are quantised too.
    device : str, optional
        "H100" or "H200", whose instructions do not differ: products, casts, elementwise operators and sums over leading axes are those
        of PyTorch 2.11 (CUDA 13.0) there, bit for bit. What was not read off the chip is refused by name: softmax, norms,
        losses, convolutions, attention. Without an environment it is `Environment(nan="nvidia")`.
    split : int, or callable from DeviceProduct to int, optional
        Parts that the device's kernels cut k into, where they may and it was not read: more than 4096 outputs at a k above
        2560, and all products in tfloat32 and sums of halves in halves.
    unread : str
        "refuse": operators that were not read off the device raise. "assume": they compute as without a device, products by
        `matmul` and `convolution`.

    Attributes
    ----------
    environment : Environment
        The one in force.
    trace : list of Operation
        What was recorded.
    tallies : dict of str to Tally
        By "forward " or "backward " and the path of a module, results, overflows, additions and those that swamped.
        What no module did, an optimiser's step say, is "forward".
    tally : Tally
        All of them together.
    scalings : dict of str to ScalingReport
        By the path of a module, product and operand ("Net.fc input_gradient weight"): amax, scales, saturated and
        underflowed elements, flags.
    matched : dict of str to tuple of str
        By pattern of `quantize`, the names of the modules that it chose for, of those that were called and their parts.

    Raises
    ------
    UnemulatedOperatorError
        At an operator on low-precision tensors that is not emulated; at code made by `torch.compile`.
    OperatorTrap
        At a flag whose trap is on; a `FloatingPointTrap` that names operator and module.
    ValueError
        At the first backward pass, and at the end of the block: a pattern of `quantize` chose for no module.

    Notes
    -----
    The context has to be around the backward pass and the optimiser's step too, and holds in the thread that enters it.
    Threads that the block starts, and what it hands to a `ThreadPoolExecutor`, may move low-precision tensors; to compute
    with them they open an emulation of their own: in one that they shared, random numbers would go by the schedule. Threads
    that get work from the block in other ways, and spawned processes, compute natively; forked ones emulate, and count
    their operations on their own.

    Tensors made of Python numbers, by `torch.tensor` and its like, are rounded by PyTorch, to nearest even, before anything
    could be asked; `torch.tensor(numbers).half()` is emulated. What NumPy is given computes as NumPy does.

    `torch.utils.checkpoint` computes activations again with the random numbers of the forward pass. Graphs are traced
    outside of the block, and may be run inside. Casts that `torch.autocast` keeps do not pass the block's borders;
    within it they are kept whatever environment is entered.

    What an operator computes:

    products
        mm, bmm, addmm, baddbmm, mv, addmv, dot, addr, sum, grouped products; convolutions with one, two or three spatial axes, transposed ones,
        and their gradients: by the accumulator, rounded to the format. A bias is where the sum starts. Sums,
        and gradients of biases, are dot products with ones.
    products of modules with a recipe
        mm, bmm, addmm, baddbmm, addbmm, mv, addmv, grouped products and convolutions, whose operands are quantised first. Attention, recurrent
        layers and layers of transformers come in parts, products among them; operators that multiply without parts are
        refused. In a matrix product of the forward pass
        the first operand counts as inputs and the second as weights. The accumulator is `matmul` or `convolution`, else
        the environment's, else the recipe's; callables get the format of the first operand's elements. Sums are float32,
        a bias is added to them, and they are rounded to the tensors' format. What quantising raises is in `scalings`,
        not in the status; it has an operation's number of its own, which addresses random numbers. Scales of delayed
        scaling are kept by module, product, operand and sizes, and each product is a step of theirs.
    casts, elementwise arithmetic and functions
        One function of `softfloat.bits`, one rounding. add with alpha, a + alpha*b, and addcmul, a + b*c, are one multiply-add.
        What comes in between is float32, as in PyTorch: value*b of addcmul, a + (value*b)*c, and of addcdiv, a + (value*b)/c, the
        quotient, and b - a of lerp, a + weight*(b - a) or, from a weight of 1/2 on, b + (weight - 1)*(b - a). So no half number is
        too large or too small there. The last operation is exact until it is rounded to the format; those before are rounded as
        the environment says of float32, and raise their flags, too. remainder has the sign of its second operand, and a zero that
        of the first.
        Python numbers, and tensors without dimensions of other dtypes, are rounded into the format first: a learning
        rate or an epsilon may vanish. A mixed operation with a float32 tensor that has dimensions is one of float32.
    other elementwise functions and their gradients (sigmoid, gelu, tanh_backward ...)
        In float64 by PyTorch, rounded once; so is ldexp, an exact scaling by a whole power, and round to decimals, the
        nearest multiple of 10^-decimals (of two as near the even one), which the environment rounds.
    softmax, norms, losses, mean and other reductions, pools, scattered sums
        In float32 by PyTorch, by one thread, rounded once. Statistics that norms save are float32; running statistics
        have the dtype of their buffers. `use_stable_statistics` chooses how norms find their variance.
    flags of what PyTorch computes
        A NaN that comes of no NaN is INVALID. An infinity that comes of finite numbers is DIVBYZERO where the operator has a
        pole; elsewhere the wide dtype overflowed, and the result is that of a number too large for the format. So it is of rms_norm,
        which PyTorch makes of operators on float32 tensors, and of its gradients. Other float32 tensors have no flags: of what a
        program computes in float32 itself the cast back raises what it rounds.
    moves, comparisons, selections, random numbers
        As they are; no flags.
    anything else
        Is refused.

    float32 tensors compute as ever. Scaled dot product attention is made of matrix products where PyTorch chooses its
    MATH backend, which then computes in the tensors' own dtype; with `quantize`, that is the only one chosen. Copies of
    FSDP2 and collectives that only move are moves. Bits do not depend on the number of threads.

    >>> import torch
    >>> from softfloat.accumulators import fma
    >>> ones = torch.ones(1, 4096, dtype=torch.float16)
    >>> with emulate(matmul=fma("float16")):
    ...     swamped = ones @ ones.T
    >>> swamped, ones @ ones.T
    (tensor([[2048.]], dtype=torch.float16), tensor([[4096.]], dtype=torch.float16))
    """

    def __init__(
        self,
        environment: Environment | None = None,
        matmul: Accumulator | Callable[[Format], Accumulator] | None = None,
        convolution: Accumulator | Callable[[Format], Accumulator] | None = None,
        *,
        record: bool | Callable[[Operation], Any] = False,
        use_stable_statistics: bool = True,
        count: bool = False,
        quantize: Choice = None,
        device: str | None = None,
        split: int | Callable[[DeviceProduct], int] | None = None,
        unread: str = REFUSE,
    ) -> None:
        check_environment(environment)
        for name, how in (("matmul", matmul), ("convolution", convolution)):
            if not (how is None or isinstance(how, Accumulator) or callable(how)):
                raise TypeError(
                    f"{name} must be a softfloat.Accumulator, a function from Format to one, or None, got {how!r}"
                )
        if not isinstance(record, bool) and not callable(record):
            raise TypeError(f"record must be True, False, or a function of an Operation, got {record!r}")
        check_switch("use_stable_statistics", use_stable_statistics)
        check_switch("count", count)
        self.trace: list[Operation] = []
        recorder = record if callable(record) else self.trace.append if record else None
        choice = check_choices(quantize)
        quantising = None if choice is None else Quantising(choice)
        chip = check_device(device, split, unread)
        if chip is not None:
            if quantising is not None:
                raise ValueError(
                    f"quantize must be None with device={device!r}: which products a recipe has was not read, got {quantize!r}"
                )
            if not chip.assumes and not (matmul is None and convolution is None):
                raise ValueError(
                    f"matmul and convolution must be None with device={device!r}, or unread 'assume', whose products they are for"
                )
            environment = Environment(nan="nvidia") if environment is None else environment
            check_settings(chip, environment)
        self._unit = Unit(environment, matmul, convolution, recorder, use_stable_statistics, count, quantising, chip)
        self._mode = _Mode(self._unit)
        self._open: ExitStack | None = None

    @property
    def environment(self) -> Environment:
        """The one given, else the one in force."""
        return self._unit.environment

    @property
    def tallies(self) -> dict[str, Tally]:
        """What was counted, by direction and module; empty without `count`."""
        return dict(self._unit.tallies or {})

    @property
    def tally(self) -> Tally:
        """The sum of `tallies`."""
        return sum(self.tallies.values(), Tally())

    @property
    def scalings(self) -> dict[str, ScalingReport]:
        """What became of quantised operands, by module, product and operand; empty without `quantize`."""
        return {} if self._unit.quantising is None else self._unit.quantising.reports

    @property
    def matched(self) -> dict[str, tuple[str, ...]]:
        """Which modules each pattern of `quantize` chose for."""
        quantising = self._unit.quantising
        return {} if quantising is None else quantising.matched(self._unit.tracker.names)

    def __repr__(self) -> str:
        chosen = "; ".join(f"{pattern!r} for {', '.join(map(repr, names))}" for pattern, names in self.matched.items())
        return f"<emulate: {chosen}>" if chosen else super().__repr__()

    def __enter__(self) -> emulate:
        if self._open is not None:
            raise RuntimeError("this emulation is in force already; make another for a block within it")
        with ExitStack() as stack:
            outer = private.innermost()
            self._unit.begin(outer.unit if isinstance(outer, _Session) else None)
            session = _Session(self._unit)
            stack.callback(session.close)
            stack.enter_context(private.patched(session))
            stack.enter_context(private.attention_in_its_dtype())
            if session.takes_apart():
                stack.enter_context(private.products_in_parts())
            stack.enter_context(self._unit.tracker)
            stack.enter_context(self._mode)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        opened, self._open = self._open, None
        assert opened is not None
        opened.close()
        if exception[0] is None and self._unit.quantising is not None:
            self._unit.quantising.settle(self._unit.tracker.names)
