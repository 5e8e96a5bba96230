"""Simulated replicas: which random numbers they share, how gradients are reduced, whether weights stay equal."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from softfloat import Environment, Flags, Rounding, StochasticRounding, accumulators, bits  # noqa: E402 -- after the skip
from softfloat.torch import Operation, OperatorTrap, UnemulatedOperatorError, emulate  # noqa: E402
from softfloat.torch.practices.replicas import Replicas  # noqa: E402

nn = torch.nn
HALF = torch.float16
ON, ONLY, OFF = StochasticRounding.ON, StochasticRounding.REPLICA_IDENTICAL_ONLY, StochasticRounding.OFF
COUNT, STEPS = 3, 4


def model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).half()


def optimiser(parameters: Any) -> Any:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def loss(net: Any, batch: Any) -> Any:
    x, labels = batch
    return nn.functional.cross_entropy(net(x), labels)


def batches(count: int = COUNT) -> list[Any]:
    rng = np.random.default_rng(1)
    return [
        (torch.from_numpy(rng.normal(size=(4, 6))).to(HALF), torch.from_numpy(rng.integers(0, 3, 4)))
        for _ in range(count)
    ]


def trained(count: int = COUNT, steps: int = STEPS, seed: int | None = 0, **options: Any) -> tuple[Replicas, Any]:
    replicas = Replicas(model(), optimiser, count, environment=Environment.ipu(seed=seed), **options)
    losses = [replicas.step(loss, batches(count)) for _ in range(steps)]
    return replicas, losses


def codes(replicas: Replicas) -> list[list[int]]:
    return [
        torch.cat([p.detach().flatten() for p in m.parameters()]).view(torch.uint16).tolist() for m in replicas.models
    ]


@pytest.mark.parametrize(
    ("esr", "stability", "identical"),
    [(ON, True, True), (ON, False, False), (ONLY, True, True), (OFF, True, True), (OFF, False, True)],
    ids=["on", "on without stability", "replica identical only", "off", "off without stability"],
)
def test_whether_weights_stay_equal(esr: StochasticRounding, stability: bool, identical: bool) -> None:
    replicas, losses = trained(esr=esr, prng_stability=stability)
    found = codes(replicas)
    differing = sum(len(set(x)) > 1 for x in zip(*found, strict=True))
    assert replicas.spread() == differing
    assert replicas.identical() is identical is (differing == 0)
    before = torch.cat([p.detach().flatten() for p in model().parameters()]).view(torch.uint16).tolist()
    assert all(x != before for x in found)
    assert len(set(losses[0])) == COUNT


@pytest.mark.parametrize(("esr", "stability"), [(ON, True), (ON, False), (ONLY, True)])
def test_the_seed_determines_every_bit(esr: StochasticRounding, stability: bool) -> None:
    first, again, other = (trained(esr=esr, prng_stability=stability, seed=seed) for seed in (7, 7, 8))
    assert codes(first[0]) == codes(again[0])
    assert first[1] == again[1]
    assert codes(first[0]) != codes(other[0])


@pytest.mark.parametrize("settings", [{}, {"ftz": True, "overflow": "saturate"}])
def test_one_replica_is_plain_training(settings: dict[str, Any]) -> None:
    environment = Environment(**settings)
    replicas = Replicas(model(), optimiser, 1, environment=environment, esr=OFF, matmul=accumulators.amp("half"))
    net = model()
    update = optimiser(net.parameters())
    for _ in range(STEPS):
        losses = replicas.step(loss, batches(1))
        update.zero_grad()
        with emulate(Environment(**settings), accumulators.amp("half")):
            plain = loss(net, batches(1)[0])
            plain.backward()
            update.step()
        assert losses == [plain.item()]
    assert codes(replicas) == [torch.cat([p.detach().flatten() for p in net.parameters()]).view(torch.uint16).tolist()]


def same_batch(**options: Any) -> tuple[list[list[Operation]], list[list[Operation]]]:
    """Operations of (forward and backward passes, updates) of each replica in a first step on the same batch."""
    trace: list[list[Operation]] = [[] for _ in range(COUNT)]
    replicas = Replicas(
        model(),
        optimiser,
        COUNT,
        environment=Environment.ipu(seed=3),
        record=lambda i, o: trace[i].append(o),
        **options,
    )
    replicas.step(loss, batches(1) * COUNT)
    updates = set(map(id, replicas.update_environments)) - set(map(id, replicas.environments))
    return (
        [[o for o in one if id(o.environment) not in updates] for one in trace],
        [[o for o in one if id(o.environment) in updates] for one in trace],
    )


def results(trace: list[Operation]) -> list[Any]:
    return [(o.operator, o.function, o.result.tolist()) for o in trace]


def nearest(operation: Operation) -> bool:
    """Whether the result is that to nearest even."""
    env = operation.environment.replace(rounding="nearest_even", overrides=operation.environment.overrides)
    function = getattr(bits, operation.function)
    again, _ = function(*operation.operands, environment=env, **operation.options)
    return bool(np.array_equal(again, operation.result))


def test_on_forward_is_random_on_each_replica_and_updates_are_the_same() -> None:
    forward, updates = same_batch(esr=ON)
    first = [one[0] for one in forward]
    assert len({tuple(x.tobytes() for x in o.operands if isinstance(x, np.ndarray)) for o in first}) == 1
    assert len({o.result.tobytes() for o in first}) == COUNT
    assert [o.stream for o in updates[0]] == list(range(len(updates[0])))
    assert results(updates[0]) == results(updates[1]) == results(updates[2])
    assert not all(nearest(o) for o in updates[0])
    assert not all(nearest(o) for o in forward[0])


def test_replica_identical_only_rounds_forward_to_nearest() -> None:
    forward, updates = same_batch(esr=ONLY)
    assert results(forward[0]) == results(forward[1]) == results(forward[2])
    assert all(nearest(o) for o in forward[0])
    assert results(updates[0]) == results(updates[1]) == results(updates[2])
    assert not all(nearest(o) for o in updates[0])


def test_off_rounds_everything_to_nearest() -> None:
    forward, updates = same_batch(esr=OFF)
    assert all(nearest(o) for one in (*forward, *updates) for o in one)


def test_no_two_uses_draw_the_same_numbers() -> None:
    """The first operations of three forward passes, and of the updates."""
    replicas = Replicas(model(), optimiser, COUNT, environment=Environment(seed=5))
    x = np.linspace(1, 2, 64)
    drawn = {
        bits.encode(x, "float16", environment=env, stream=0)[0].tobytes()
        for env in (*replicas.environments, replicas.update_environments[0])
    }
    assert len(drawn) == COUNT + 1


def test_settings_of_formats_stay() -> None:
    """float32 of the IPU rounds to nearest."""
    replicas = Replicas(model(), optimiser, 2, environment=Environment.ipu(seed=1, nanoo=True))
    for env in (*replicas.environments, *replicas.update_environments):
        assert env.rounding is Rounding.STOCHASTIC
        assert env.for_format("float32").rounding is Rounding.NEAREST_EVEN
        assert env.overflow == Environment.ipu(nanoo=True).overflow


class Given(nn.Module):
    """The gradient of its weight is the batch."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.weight, self.unused = (nn.Parameter(torch.zeros(4, dtype=dtype)) for _ in range(2))


def weighed(net: Any, batch: Any) -> Any:
    return (net.weight * batch).sum() if batch is not None else (net.unused * 0).sum()


@pytest.mark.parametrize("dtype", [HALF, torch.bfloat16])
@pytest.mark.parametrize("esr", [ON, OFF])
def test_gradients_are_means_rounded_once(dtype: Any, esr: StochasticRounding) -> None:
    """Exact fractions, to nearest even: sums of three halves are exact in float32, and no quotient by 3 is near a tie."""
    rng = np.random.default_rng(2)
    given = [torch.from_numpy(rng.integers(-200, 200, 4) * 0.25).to(dtype) for _ in range(3)]
    replicas = Replicas(Given(dtype), optimiser, 3, environment=Environment(seed=1), esr=esr)
    replicas.step(weighed, given)
    exact = [sum(map(Fraction, column)) / 3 for column in zip(*(x.tolist() for x in given), strict=True)]
    expected, _ = bits.encode(exact, "float16" if dtype == HALF else "bfloat16")
    for net in replicas.models:
        assert net.weight.grad.view(torch.uint16).tolist() == expected.tolist()
        assert net.unused.grad is None
    assert len({net.weight.grad.data_ptr() for net in replicas.models}) == 3


def test_the_order_of_the_sum() -> None:
    """2^24 + 1 + 1 in float32, from left to right."""
    for given, expected in (([2.0**24, 1.0, 1.0], 2.0**24), ([1.0, 1.0, 2.0**24], 2.0**24 + 2)):
        replicas = Replicas(Given(torch.float32), optimiser, 3, environment=Environment(), esr=OFF)
        replicas.step(weighed, [torch.full((4,), x) for x in given])
        assert replicas.models[0].weight.grad.tolist() == (torch.full((4,), expected) / 3).tolist()


def test_a_gradient_that_one_replica_lacks() -> None:
    replicas = Replicas(Given(HALF), optimiser, 2, environment=Environment(), esr=OFF)
    replicas.step(weighed, [torch.full((4,), 3.0, dtype=HALF), None])
    for net in replicas.models:
        assert net.weight.grad.tolist() == [1.5] * 4
        assert net.unused.grad.tolist() == [0.0] * 4
    replicas.step(weighed, [None, None])
    assert replicas.models[0].weight.grad is None


def test_an_overflow_of_the_mean_follows_the_environment() -> None:
    """Of float32 gradients none; the mean of halves is none either; flags of passes reach the environment."""
    env = Environment(overflow="saturate")
    replicas = Replicas(Given(HALF), optimiser, 2, environment=env, esr=OFF)
    replicas.step(weighed, [torch.full((4,), 65504.0, dtype=HALF)] * 2)
    assert replicas.models[0].weight.grad.tolist() == [65504.0] * 4
    assert not env.status.flags & Flags.OVERFLOW
    replicas.step(lambda net, x: (net.weight * x * x).sum(), [torch.full((4,), 300.0, dtype=HALF)] * 2)
    assert env.status.flags & Flags.OVERFLOW


def test_a_trap_leaves_the_weights() -> None:
    env = Environment(traps="OVERFLOW")
    replicas = Replicas(Given(HALF), optimiser, 2, environment=env, esr=OFF)
    with pytest.raises(OperatorTrap, match=r"OVERFLOW raised by mul"):
        replicas.step(
            lambda net, x: ((net.weight + 1) * x * x).sum(),
            [torch.ones(4, dtype=HALF), torch.full((4,), 300.0, dtype=HALF)],
        )
    assert env.status.flags & Flags.OVERFLOW
    assert [net.weight.tolist() for net in replicas.models] == [[0.0] * 4] * 2


def test_weights_are_compared_by_their_bits() -> None:
    """NaNs equal themselves, zeros differ by sign."""
    replicas = Replicas(Given(HALF), optimiser, 2, environment=Environment(), esr=OFF)
    first, second = (net.weight for net in replicas.models)
    with torch.no_grad():
        first.copy_(torch.tensor([torch.nan, 0.0, 1.0, 2.0]))
        second.copy_(torch.tensor([torch.nan, -0.0, 1.0, 3.0]))
    assert replicas.spread() == 2
    assert not replicas.identical()


def test_the_model_given_is_copied() -> None:
    net = model()
    before = copy.deepcopy(net.state_dict())
    Replicas(net, optimiser, 2, environment=Environment(), esr=OFF).step(loss, batches(2))
    assert all(torch.equal(x, before[name]) for name, x in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"count": 0}, ValueError, "count must be a positive integer, got 0"),
        ({"count": True}, ValueError, "count must be a positive integer, got True"),
        ({"model": 1}, TypeError, "model must be a torch.nn.Module, got int"),
        ({"optimizer_factory": 1}, TypeError, "optimizer_factory must be a function of parameters, got 1"),
        ({"environment": None}, TypeError, "environment must be a softfloat.Environment, got NoneType"),
        ({"esr": "onn"}, ValueError, r"esr must be one of OFF, ON, .*got 'onn'; did you mean 'ON'\?"),
        ({"esr": 1}, TypeError, r"esr must be a bool or one of StochasticRounding.OFF, .*got 1"),
        ({"environment": Environment()}, ValueError, "environment must have a seed for StochasticRounding.ON, got seed=None"),
        ({"esr": ONLY, "prng_stability": False}, ValueError, "prng_stability must be True for .*ONLY, got False"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(options: dict[str, Any], error: Any, words: str) -> None:
    arguments = {"model": model(), "optimizer_factory": optimiser, "count": 2, "environment": Environment(seed=0)}
    with pytest.raises(error, match=words):
        Replicas(**{**arguments, **options})


def test_a_batch_for_each() -> None:
    replicas = Replicas(model(), optimiser, 2, environment=Environment(seed=0))
    with pytest.raises(ValueError, match="batches must have one for each of 2 replicas, got 3"):
        replicas.step(loss, batches(3))


# -- PyTorch's own ---------------------------------------------------------------------------------------------------


@pytest.fixture
def group(tmp_path: Any) -> Iterator[None]:
    """One process."""
    if not torch.distributed.is_available():
        pytest.skip("PyTorch without torch.distributed")
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore:Guessing device")
def test_gradients_are_not_summed_natively_by_other_processes(group: None) -> None:
    x = torch.ones(2, 3, dtype=torch.float16)
    with emulate():
        replica = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3).half())  # broadcasts
        with pytest.raises(UnemulatedOperatorError, match=r"float32_parameters.*Replicas \(in c10d\.allreduce_"):
            replica(x).sum().backward()
        everywhere = [torch.zeros_like(x)]
        torch.distributed.all_gather(everywhere, x)
        assert torch.equal(everywhere[0], x)


@pytest.mark.filterwarnings("ignore")  # of PyTorch's own modules
@pytest.mark.parametrize("reduced", [None, torch.float32], ids=str)
def test_sharded_parameters(group: None, reduced: Any) -> None:
    """FSDP2's copies are moves: a step of a sharded bfloat16 model has the bits of the same step of a plain one."""
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    if not hasattr(fsdp, "fully_shard"):
        pytest.skip("PyTorch's fully_shard has moved")
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)).bfloat16()
    sharded, x = copy.deepcopy(plain), torch.randn(3, 4).bfloat16()
    for part in (*sharded, sharded):
        fsdp.fully_shard(part, mesh=mesh, mp_policy=fsdp.MixedPrecisionPolicy(reduce_dtype=reduced))
    environment = Environment(rounding="toward_positive")
    for model in (plain, sharded):
        with emulate(environment):
            model(x).float().sum().backward()
            torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9).step()
    for ours, theirs in zip(plain.parameters(), sharded.parameters(), strict=True):
        assert torch.equal(ours, theirs.full_tensor())


def test_copies_into_another_dtype_are_refused(group: None) -> None:
    pytest.importorskip("torch.distributed.fsdp")
    if not hasattr(torch.ops.fsdp, "all_gather_copy_in"):
        pytest.skip("PyTorch without that operator")
    x = torch.ones(2)
    with emulate(), pytest.raises(UnemulatedOperatorError, match=r"of one dtype, got torch\.bfloat16, torch\.float32"):
        torch.ops.fsdp.all_gather_copy_in([x], torch.zeros(2, dtype=torch.bfloat16), [2], 2, 0)


@pytest.mark.filterwarnings("ignore")  # of names that PyTorch changes
def test_functional_collectives_that_only_move(group: None) -> None:
    functional = pytest.importorskip("torch.distributed._functional_collectives")
    x, world = torch.ones(2, 3, dtype=torch.float16), torch.distributed.group.WORLD
    with emulate():
        assert torch.equal(functional.all_gather_tensor(x, 0, world) + 0, x)
        assert torch.equal(functional.broadcast(x, 0, world) + 0, x)
        with pytest.raises(UnemulatedOperatorError, match="reduce_dtype"):
            functional.all_reduce(x, "sum", world)


def test_memory_can_be_resized_afterwards() -> None:
    """What has been computed with is not pinned."""
    x, y = torch.ones(3, dtype=torch.float16), torch.ones(3)
    with emulate():
        (x + x, y.half())
    assert x.untyped_storage().resizable()
    assert y.untyped_storage().resizable()
