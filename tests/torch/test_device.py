"""What an H100 computed under PyTorch 2.11 and CUDA 13.0, replayed by `emulate(device=...)`: checksums of its outputs, none differs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402 -- after the skip

import softfloat  # noqa: E402
from softfloat.formats import bfloat16, float8_e4m3fn, float16, tfloat32  # noqa: E402
from softfloat.torch import DeviceProduct, UnemulatedOperatorError, emulate  # noqa: E402
from softfloat.torch.operators.devices import read_parts  # noqa: E402

HALF, BF16, SINGLE = torch.float16, torch.bfloat16, torch.float32
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
SHORT = {HALF: "f16", BF16: "bf16", SINGLE: "f32", E4M3: "e4m3", E5M2: "e5m2"}
LOWS = pytest.mark.parametrize("dtype", [HALF, BF16], ids=["f16", "bf16"])
READINGS = Path(__file__).with_name("h100.npz")
Cases = Iterator[tuple[str, Callable[[], Any]]]


@pytest.fixture(scope="module")
def readings() -> dict[str, int]:
    """Checksums of outputs, and of some inputs, by name."""
    with np.load(READINGS) as archive:
        return dict(zip(archive["names"].tolist(), archive["checksums"].tolist(), strict=True))


def codes(x: Any) -> np.ndarray[Any, Any]:
    x = x.detach().contiguous()
    signed, unsigned = {1: (torch.uint8, np.uint8), 2: (torch.int16, np.uint16), 4: (torch.int32, np.uint32)}[
        x.element_size()
    ]
    found: np.ndarray[Any, Any] = x.view(signed).numpy().view(unsigned)
    return found


def checksum(x: Any) -> int:
    return zlib.crc32(codes(x).tobytes())


def replayed(readings: dict[str, int], cases: Cases, **options: Any) -> int:
    """Assert that each case gives what was read; how many did."""
    found = {}
    for name, case in cases:
        if name in readings:
            with emulate(device="H100", **options):
                found[name] = checksum(case())
    assert found
    assert [name for name, x in found.items() if x != readings[name]] == []
    return len(found)


def drawn(seed: int | tuple[int, ...], *shape: int, dtype: Any = HALF, scale: float = 1.0) -> Any:
    numbers = np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32(scale)
    return torch.from_numpy(numbers).to(dtype)


@contextmanager
def flagged(name: str, value: bool) -> Iterator[None]:
    """A setting of `torch.backends.cuda.matmul`."""
    settings = torch.backends.cuda.matmul
    before = getattr(settings, name)
    setattr(settings, name, value)
    try:
        yield
    finally:
        setattr(settings, name, before)


def test_inputs_are_those_that_were_read(readings: dict[str, int]) -> None:
    """Numbers drawn by NumPy; other ones would make every test here fail."""
    for dtype in (HALF, BF16, SINGLE, E4M3):
        assert checksum(drawn(2, 48, 256, dtype=dtype)) == readings[f"input/{SHORT[dtype]}"]


# -- products --------------------------------------------------------------------------------------------------------


def products(dtype: Any, k: int, m: int = 32, n: int = 48) -> Cases:
    """Every operator that multiplies, at one length of k."""
    x, w, b = drawn(1, m, k, dtype=dtype), drawn(2, n, k, dtype=dtype), drawn(3, n, dtype=dtype)
    c = drawn(4, m, n, dtype=dtype, scale=4.0)
    column = drawn(5, m, 1, dtype=dtype)
    xs, ys = drawn(6, 2, m, k, dtype=dtype), drawn(7, 2, k, n, dtype=dtype)
    cs = drawn(8, 2, m, n, dtype=dtype, scale=4.0)
    y, first = w.t(), c[:, 0].contiguous()
    made = {
        "linear": lambda: F.linear(x, w),
        "linear_bias": lambda: F.linear(x, w, b),
        "linear_bias_m1": lambda: F.linear(x[:1], w, b),
        "linear_bias_m8": lambda: F.linear(x[:8], w, b),
        "linear_bias_n1": lambda: F.linear(x, w[:1], b[:1]),
        "linear_bias_1d": lambda: F.linear(x[0], w, b),
        "linear_bias_3d": lambda: F.linear(x.view(2, m // 2, k), w, b),
        "linear_bias_strided": lambda: F.linear(x, w[:24], b[::2]),
        "mv": lambda: x @ w[0],
        "vm": lambda: x[0] @ y,
        "addmm_2d": lambda: torch.addmm(c, x, y),
        "addmm_row": lambda: torch.addmm(b[None], x, y),
        "addmm_column": lambda: torch.addmm(column, x, y),
        "addmm_0d": lambda: torch.addmm(b[0], x, y),
        "addmm_alpha": lambda: torch.addmm(c, x, y, alpha=0.3),
        "addmm_beta": lambda: torch.addmm(c, x, y, beta=0.3),
        "addmm_both": lambda: torch.addmm(c, x, y, alpha=0.3, beta=0.7),
        "addmm_1d_beta": lambda: torch.addmm(b, x, y, beta=0.3),
        "addmm_alpha_beta0": lambda: torch.addmm(c, x, y, beta=0, alpha=0.3),
        "addmm_in_place_alpha": lambda: c.clone().addmm_(x, y, alpha=0.3, beta=0.7),
        "addmm_nn": lambda: torch.addmm(c, x, y.contiguous()),
        "addmv": lambda: torch.addmv(first, x, w[0]),
        "addmv_alpha": lambda: torch.addmv(first, x, w[0], alpha=0.3, beta=0.7),
        "bmm": lambda: torch.bmm(xs, ys),
        "bmm_row": lambda: torch.bmm(xs[:, :1], ys),
        "baddbmm": lambda: torch.baddbmm(cs, xs, ys),
        "baddbmm_1d": lambda: torch.baddbmm(b, xs, ys),
        "baddbmm_alpha": lambda: torch.baddbmm(cs, xs, ys, alpha=0.3),
        "baddbmm_both": lambda: torch.baddbmm(cs, xs, ys, alpha=0.3, beta=0.7),
        "addbmm": lambda: torch.addbmm(c, xs, ys),
        "mm_f32": lambda: torch.ops.aten.mm.dtype(x, y, SINGLE),
        "bmm_f32": lambda: torch.ops.aten.bmm.dtype(xs, ys, SINGLE),
    }
    for name, case in made.items():
        yield f"products/{SHORT[dtype]}/{k}/{name}", case


needs_out_dtype = pytest.mark.skipif(not hasattr(torch.ops.aten.mm, "dtype"), reason="needs products with an out_dtype")


@needs_out_dtype
@LOWS
@pytest.mark.parametrize("k", [16, 40, 1024, 4096])
def test_products(dtype: Any, k: int, readings: dict[str, int]) -> None:
    """Biases, addends, alpha and beta, of rows, columns and batches, with k in one part and in three."""
    assert replayed(readings, products(dtype, k)) == 32


@needs_out_dtype
@LOWS
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (32, 48, 4096)])
def test_addends_of_float32_tell_how_they_are_added(
    dtype: Any, m: int, n: int, k: int, readings: dict[str, int]
) -> None:
    """fma(alpha, sum, beta*c); of split products fma(beta, c, alpha*sum)."""
    x, y, c = drawn((m, k), m, k, dtype=dtype), drawn((k, n), k, n, dtype=dtype), drawn((m, n), m, n, dtype=SINGLE)
    cs, xs, ys = (torch.stack([z, z]) for z in (c, x, y))

    def cases() -> Cases:
        for alpha, beta in ((0.3, 1), (1, 0.7), (0.3, 0.7)):
            words = {"alpha": alpha, "beta": beta}
            name = f"{SHORT[dtype]}/{m}/{n}/{k}/{alpha}/{beta}"
            yield f"am/{name}", lambda w=words: torch.ops.aten.addmm.dtype(c, x, y, SINGLE, **w)[:32, :32]
            yield f"bb/{name}", lambda w=words: torch.ops.aten.baddbmm.dtype(cs, xs, ys, SINGLE, **w)[1, :32, :32]

    assert replayed(readings, cases()) == 6


def test_the_bits_of_one_output() -> None:
    """A tensor core's, where single, fused gives another."""
    x, w = drawn(1, 32, 1024), drawn(2, 48, 1024)
    with emulate(device="H100"):
        found = F.linear(x, w)
    with emulate(softfloat.Environment(nan="nvidia")):
        other = F.linear(x, w)
    assert (int(codes(found)[0, 21]), int(codes(other)[0, 21])) == (0xD336, 0xD337)


class Perceptron(torch.nn.Module):
    """Linear layers, of which the second has no bias, and relu between them."""

    def __init__(self, sizes: tuple[int, ...], dtype: Any, seed: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for i, (a, b) in enumerate(pairwise(sizes)):
            layer = torch.nn.Linear(a, b, bias=i != 1, dtype=dtype)
            layer.weight = torch.nn.Parameter(drawn(seed + 10 * i, b, a, dtype=dtype, scale=a**-0.5))
            if i != 1:
                layer.bias = torch.nn.Parameter(drawn(seed + 10 * i + 1, b, dtype=dtype, scale=0.5))
            self.layers.append(layer)

    def forward(self, x: Any, kept: dict[str, Any]) -> Any:
        for i, layer in enumerate(self.layers):
            x = kept[f"z{i}"] = layer(torch.relu(x) if i else x)
        return x


@LOWS
@pytest.mark.parametrize(
    ("batch", "sizes"),
    [
        (16, (64, 32, 32, 16)),
        (64, (256, 128, 128, 64)),
        (32, (4096, 64, 64, 32)),
        (4096, (32, 16, 16, 8)),
        (1, (64, 64, 64, 16)),
    ],
)
def test_a_model_and_its_gradients(dtype: Any, batch: int, sizes: tuple[int, ...], readings: dict[str, int]) -> None:
    """Outputs of all layers, gradients of inputs, weights and biases."""
    kept: dict[str, Any] = {}
    model = Perceptron(sizes, dtype, 50)
    x = drawn(150, batch, sizes[0], dtype=dtype).requires_grad_()
    weights = [layer.weight for layer in model.layers]
    biases = [layer.bias for layer in model.layers if layer.bias is not None]
    with emulate(device="H100"):
        y = model(x, kept)
        found = torch.autograd.grad(y, [x, *weights, *biases], drawn(151, *y.shape, dtype=dtype))
    kept |= dict(zip(("gx", "gw0", "gw1", "gw2", "gb0", "gb1"), found, strict=True))
    prefix = f"mlp/{SHORT[dtype]}/{batch}/{'-'.join(map(str, sizes))}"
    differ = {
        name for name, z in kept.items() if checksum(z[:64, :64] if z.ndim > 1 else z) != readings[f"{prefix}/{name}"]
    }
    assert differ == set()


# -- k in parts --------------------------------------------------------------------------------------------------------

ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048)
LENGTHS = (1536, 2048, 2304, 2560, 3072, 3584, 4032, 4096, 4160, 5120, 6144, 8192, 11008, 12288, 14336, 16384)


def aligned(m: int, n: int, transposed: bool) -> bool:
    """Whether products of halves have rows of whole 16 bytes."""
    return m % 8 == 0 if n == 1 else n % 8 == 0 and (m % 8 == 0 or not transposed)


@pytest.mark.parametrize("device", ["H100", "H200"])
def test_parts_are_those_that_were_read(device: str) -> None:
    """A reading has a bit for each length of parts that gives the outputs."""
    served = 0
    with np.load(READINGS) as archive:
        masks = archive[device]
    for (which, at), of_length in zip(np.ndindex(2, len(LENGTHS)), masks, strict=True):
        fmt, k = (float16, bfloat16)[which], LENGTHS[at]
        tiles = -(-k // 64)
        lengths = list(dict.fromkeys(-(-tiles // parts) for parts in range(1, 25)))
        for (row, column, layout), mask in np.ndenumerate(of_length.reshape(len(ROWS), len(ROWS), 3)):
            m, n = ROWS[row], ROWS[column]
            parts = read_parts(device, DeviceProduct("mm", fmt, 1, m, n, k))
            if parts is not None and aligned(m, n, layout == 2):
                served += 1
                assert mask >> lengths.index(-(-tiles // parts)) & 1, (fmt, m, n, k, layout, parts)
    assert served == {"H100": 15006, "H200": 14076}[device]


def test_parts_that_were_not_read() -> None:
    """H100 and H200 differ at 256 x 256 x 4096: neither is served; nor is what is longer, or of other kinds."""
    many = ("H100", 1), ("H200", None)
    for device, parts in many:
        assert read_parts(device, DeviceProduct("mm", float16, 1, 512, 512, 4096)) == parts
    for device in ("H100", "H200"):
        for fmt, operation, sizes in (
            (float16, "mm", (1, 256, 256, 4096)),
            (float16, "mm", (1, 64, 64, 20480)),
            (bfloat16, "mm", (1, 8, 4096, 4096)),
            (tfloat32, "mm", (1, 64, 64, 64)),
            (float16, "fp16_accumulation", (1, 64, 64, 64)),
            (float8_e4m3fn, "scaled_mm_fast", (1, 64, 64, 8192)),
        ):
            assert read_parts(device, DeviceProduct(operation, fmt, *sizes)) is None
        assert read_parts(device, DeviceProduct("mm", bfloat16, 2, 8, 4096, 16384)) == 1
        assert read_parts(device, DeviceProduct("mm", bfloat16, 1, 8, 256, 16384)) == 12


def pool(dtype: Any) -> tuple[Any, Any, Any]:
    """Numbers whose later products take back most of the earlier ones."""
    random = np.random.default_rng(1)
    a = torch.from_numpy(random.standard_normal((1024, 8192), np.float32)).to(dtype)
    b = torch.from_numpy(random.standard_normal((8192, 1024), np.float32)).to(dtype)
    near = torch.from_numpy((random.integers(0, 16, b.shape, np.int16) == 0).astype(np.int16))
    return a, b, -(b.view(torch.int16) ^ near).view(dtype)


@LOWS
def test_k_in_parts(dtype: Any, readings: dict[str, int]) -> None:
    """Of 32 x 32 outputs; two shapes are served, of others the parts are given."""
    a, b, c = pool(dtype)
    given = {(128, 128, 16384): 9, (256, 256, 4096): 2, (1024, 1024, 16384): 2}

    def cases() -> Cases:
        for m, n, k in ((64, 64, 4096), (16, 16, 16384), *given):
            x = torch.cat([a[:m, : k // 2]] * 2, 1)
            y = torch.cat([b[: k // 2, :n], c[: k // 2, :n]], 0)
            shown = min(m, 8), min(n, 32)
            yield f"probe/{SHORT[dtype]}/{m}x{n}x{k}/nn", lambda x=x, y=y, s=shown: (x @ y)[: s[0], : s[1]]

    def parts(product: DeviceProduct) -> int:
        return given[product.m, product.n, product.k]

    small = [(name, case) for name, case in cases() if "1024x1024" not in name]
    assert replayed(readings, iter(small), split=parts) == 4


@pytest.mark.parametrize(("k", "parts"), [(16, 4), (64, 2), (256, 8), (1024, 16)])
def test_tf32(k: int, parts: int, readings: dict[str, int]) -> None:
    """Operands to nearest even, parts of multiples of four products."""
    x, y = drawn(17, 64, k, dtype=SINGLE), drawn(18, k, 64, dtype=SINGLE)
    a, w = drawn(11, 32, k, dtype=SINGLE), drawn(12, 48, k, dtype=SINGLE)
    c = drawn(14, 32, 48, dtype=SINGLE)
    cases = [
        ("mm64", lambda: x @ y),
        ("linear", lambda: F.linear(a, w)),
        ("addmm", lambda: torch.addmm(c, a, w.t())),
        ("addmm_both", lambda: torch.addmm(c, a, w.t(), alpha=0.3, beta=0.7)),
    ]
    with flagged("allow_tf32", True):
        assert replayed(readings, ((f"tf32/{k}/{name}", case) for name, case in cases), split=parts) == 4


@pytest.mark.parametrize(
    ("k", "shape", "parts"), [(32, (32, 48), 4), (256, (64, 64), 4), (256, (256, 256), 1), (4096, (64, 64), 22)]
)
def test_sums_of_halves_in_halves(k: int, shape: tuple[int, int], parts: int, readings: dict[str, int]) -> None:
    """Whose parts are told."""
    m, n = shape
    x, y = drawn(61, m, k, scale=0.25), drawn(62, k, n, scale=0.25)
    with flagged("allow_fp16_accumulation", True):
        assert replayed(readings, iter([(f"half_sums/{k}/{m}x{n}", lambda: (x @ y)[:32, :32])]), split=parts)


# -- scaled operands -------------------------------------------------------------------------------------------------


def scaled(a_type: Any, b_type: Any, k: int, m: int = 32, n: int = 48) -> Cases:
    a, b = drawn(21, m, k, dtype=a_type), drawn(22, n, k, dtype=b_type).t()
    one, two = torch.tensor(0.3), torch.tensor(0.7)
    rows, columns = drawn(23, m, 1, dtype=SINGLE).abs(), drawn(24, 1, n, dtype=SINGLE).abs()
    prefix = f"scaled/{SHORT[a_type]}_{SHORT[b_type]}/{k}"
    for fast, out, biased in np.ndindex(2, 3, 2):
        dtype = (SINGLE, BF16, HALF)[out]
        bias = drawn(25, n, dtype=dtype) if biased else None
        words = {"bias": bias, "out_dtype": dtype, "use_fast_accum": bool(fast)}
        ending = f"{SHORT[dtype]}{'_bias' * biased}{'_fast' * fast}"
        yield f"{prefix}/tensor_{ending}", lambda w=words: torch._scaled_mm(a, b, one, two, **w)
        yield f"{prefix}/row_{ending}", lambda w=words: torch._scaled_mm(a, b, rows, columns, **w)
    if a_type == b_type:
        big = drawn(26, 128, k, dtype=E4M3).t()
        by_row = drawn(27, k // 128, m, dtype=SINGLE).abs().t()
        square = drawn(28, 1, k // 128, dtype=SINGLE).abs().t()
        by_column = drawn(29, k // 128, 128, dtype=SINGLE).abs()
        for dtype in (SINGLE, BF16):
            for name, scales in (("128x128", square), ("1x128", by_column)):
                yield (
                    f"{prefix}/1x128_{name}_{SHORT[dtype]}",
                    lambda s=scales, d=dtype: torch._scaled_mm(a, big, by_row, s, out_dtype=d),
                )


@pytest.mark.parametrize(
    ("a", "b", "k", "count"),
    [(E4M3, E4M3, 256, 24), (E4M3, E4M3, 4096, 24), (E5M2, E4M3, 64, 20), (E4M3, E5M2, 1024, 20)],
)
def test_scaled_products(a: Any, b: Any, k: int, count: int, readings: dict[str, int]) -> None:
    """Scales of tensors, rows and blocks; fast and slow; biases."""
    assert replayed(readings, scaled(a, b, k)) == count


# -- elementwise -----------------------------------------------------------------------------------------------------

UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "erf": torch.erf,
    "softplus": F.softplus,
    "relu": torch.relu,
    "leaky_relu": F.leaky_relu,
    "square": torch.square,
    "elu": F.elu,
    "hardswish": F.hardswish,
    "mish": F.mish,
    "times_number": lambda x: x * 0.3,
    "over_number": lambda x: x / 0.3,
    "plus_number": lambda x: x + 0.3,
    "minus_number": lambda x: x - 0.3,
    "number_minus": lambda x: 0.3 - x,
    "number_over": lambda x: 0.3 / x,
    "number_alpha": lambda x: torch.add(x, 0.7, alpha=0.3),
    "float": lambda x: x.float(),
    "neg": torch.neg,
    "abs": torch.abs,
    **{f"pow/{power}": lambda x, p=power: x.pow(p) for power in (0.5, 3, -1, -2)},
    "lk": lambda x: F.leaky_relu(x, 0.2),
}


@LOWS
def test_functions_of_all_codes(dtype: Any, readings: dict[str, int]) -> None:
    """65 536 results each, NaNs with their bits."""
    x = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)
    cases = ((f"unary/{SHORT[dtype]}/{name}", lambda f=function: f(x)) for name, function in UNARY.items())
    assert replayed(readings, cases) == len(UNARY)


def pairs(dtype: Any) -> Cases:
    """Of all codes, and of small numbers."""
    random = np.random.default_rng(31)
    n = 2048

    def some(kind: int) -> Any:
        every = random.integers(0, 65536, n, np.int64)
        if kind:
            low = 0x0400 if dtype == HALF else 0x0080
            every = (every & 0x8000) | random.integers(0, (low * 0x20 if dtype == HALF else 0x4000), n)
        return torch.from_numpy(every.astype(np.uint16).view(np.int16)).view(dtype)

    for kind in (0, 1):
        x, y, z = some(kind), some(kind), some(kind)
        if dtype == BF16 and kind == 1:  # products at the underflow threshold
            edge = random.integers(0x1F00, 0x2080, n, np.int64).astype(np.uint16).view(np.int16)
            y = torch.from_numpy(edge).view(dtype)
        wide = x.float() * np.float32(1.0003)
        made = {
            "add": lambda x=x, y=y: x + y,
            "sub": lambda x=x, y=y: x - y,
            "mul": lambda x=x, y=y: x * y,
            "div": lambda x=x, y=y: x / y,
            "add_alpha": lambda x=x, y=y: torch.add(x, y, alpha=0.3),
            "sub_alpha": lambda x=x, y=y: torch.sub(x, y, alpha=0.3),
            "addcmul": lambda x=x, y=y, z=z: torch.addcmul(x, y, z),
            "addcmul_value": lambda x=x, y=y, z=z: torch.addcmul(x, y, z, value=0.3),
            "addcdiv": lambda x=x, y=y, z=z: torch.addcdiv(x, y, z),
            "addcdiv_value": lambda x=x, y=y, z=z: torch.addcdiv(x, y, z, value=0.3),
            "lerp": lambda x=x, y=y, z=z: torch.lerp(x, y, z),
            "lerp_number": lambda x=x, y=y: torch.lerp(x, y, 0.3),
            "maximum": lambda x=x, y=y: torch.maximum(x, y),
            "minimum": lambda x=x, y=y: torch.minimum(x, y),
            "tanh_backward": lambda x=x, y=y: torch.ops.aten.tanh_backward(x, y),
            "sigmoid_backward": lambda x=x, y=y: torch.ops.aten.sigmoid_backward(x, y),
            "threshold_backward": lambda x=x, y=y: torch.ops.aten.threshold_backward(x, y, 0),
            "foreach_add": lambda x=x, y=y: torch._foreach_add([x], [y], alpha=0.3)[0],
            "from_float": lambda w=wide: w.to(dtype),
            "to_e4m3": lambda x=x: x.to(E4M3),
            "to_e5m2": lambda x=x: x.to(E5M2),
            "float_to_e4m3": lambda w=wide: w.to(E4M3),
            "mixed_add": lambda x=x, w=wide: x + w[:1].reshape(()),
            "scalar_tensor": lambda x=x, w=wide: x * w[5].reshape(()),
        }
        for name, case in made.items():
            yield f"pairs/{SHORT[dtype]}/{kind}/{name}", case


@LOWS
def test_operations_on_drawn_operands(dtype: Any, readings: dict[str, int]) -> None:
    """Numbers multiply and add in one; gradients of tanh and sigmoid round each step to the dtype."""
    assert replayed(readings, pairs(dtype)) == 48


# -- sums ------------------------------------------------------------------------------------------------------------


@LOWS
def test_sums_over_leading_axes(dtype: Any, readings: dict[str, int]) -> None:
    """In float32 and in the dtype, and means; where rows of threads share a sum, and where they do not."""

    def cases() -> Cases:
        for rows, columns in ((32, 48), (64, 256), (1024, 64), (7, 5)):
            x, name = drawn(41, rows, columns, dtype=dtype), f"reductions/{SHORT[dtype]}/{rows}x{columns}"
            yield f"{name}/sum0", lambda x=x: x.sum(0)
            yield f"{name}/sum0_keep", lambda x=x: x.sum(0, keepdim=True)
            yield f"{name}/sum0_f32", lambda x=x: x.sum(0, dtype=SINGLE)
        for shape, axes in (
            ((4096, 16), (0,)),
            ((1000, 3), (0,)),
            ((16, 8192), (0,)),
            ((8, 32, 64), (0, 1)),
            ((4, 7, 9), (0,)),
        ):
            x, name = drawn(shape, *shape, dtype=dtype), f"su/{SHORT[dtype]}/{shape}/{axes}"
            yield f"{name}/s", lambda x=x, r=axes: x.sum(r, dtype=SINGLE).flatten()[:64]
            yield f"{name}/m", lambda x=x, r=axes: x.mean(r).flatten()[:64]

    assert replayed(readings, cases()) == 22


# -- what was not read -------------------------------------------------------------------------------------------------

x, y = torch.ones(16, 32, dtype=HALF), torch.ones(32, 16, dtype=HALF)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "rows of 20 bytes": (
        lambda: x[:, :10].contiguous() @ y[:10],
        r"multiples of 16 bytes, was not read off an H100; fill sizes up to multiples of 8",
    ),
    "a place between": (lambda: torch.ones(520, dtype=HALF)[1:513].view(16, 32) @ y, "multiples of 16 bytes"),
    "an unaligned result": (lambda: x @ torch.ones(32, 10, dtype=HALF), "multiples of 16 bytes"),
    "parts": (
        lambda: torch.ones(64, 4096, dtype=HALF) @ torch.ones(4096, 512, dtype=HALF),
        r"accepted: emulate\(device='H100', split=\.\.\.\)",
    ),
    "float32": (lambda: x.float() @ y.float(), "mm of float32 .* set torch.backends.cuda.matmul.allow_tf32"),
    "float64": (lambda: x.double() @ y.double(), "mm of torch.float64"),
    "dot": (lambda: torch.dot(x[0], x[1]), "aten.dot.default was not read"),
    "alpha of a bias": (lambda: torch.addmm(y[0], x, y, alpha=0.5), "a bias and an alpha of 0.5"),
    "convolution": (
        lambda: F.conv1d(x[None], torch.ones(4, 16, 1, dtype=HALF)),
        "aten.convolution.default was not read",
    ),
    "attention": (lambda: F.scaled_dot_product_attention(x[None], x[None], x[None]), "was not read"),
    "scales of 32": (
        lambda: torch._scaled_mm(
            torch.ones(16, 32).to(E5M2), torch.ones(16, 32).to(E5M2).t(), torch.ones(()), torch.ones(()), out_dtype=HALF
        ),
        "float8_e5m2 .* was not read",
    ),
    "fp16 accumulation of an addmm": (
        lambda: torch.addmm(y[0], x, y),
        "addmm under torch.backends.cuda.matmul.allow_fp16_accumulation",
    ),
    "gelu": (lambda: F.gelu(x), "aten.gelu.default was not read off an H100; choose approximate='tanh'"),
    "silu backward": (lambda: torch.ops.aten.silu_backward(x, x), "silu_backward.default was not read"),
    "power": (lambda: x**5, "pow.Tensor_Scalar with 5 was not read"),
    "powers": (lambda: x**x, "pow.Tensor_Tensor was not read"),
    "elu": (lambda: F.elu(x, 2.0), "elu.default with 2.0"),
    "softmax": (lambda: x.softmax(1), "the order in which aten._softmax.default sums"),
    "layer norm": (lambda: F.layer_norm(x, (32,)), "the order in which aten.native_layer_norm.default sums"),
    "sum of rows": (lambda: x.sum(1), r"sum over axes \[1\] of \(16, 32\)"),
    "sum of all": (lambda: x.sum(), r"sum over axes \[0, 1\]"),
    "mean of many": (lambda: torch.ones(4096, 64, dtype=HALF).mean(0), "mean of 4096 numbers for each of 64 outputs"),
    "index_put": (lambda: x.clone().index_put_((torch.tensor([0]),), x[:1], accumulate=True), "the order in which"),
    "foreach": (lambda: torch._foreach_mul([x], 2.0), "foreach=False"),
    "arange": (lambda: torch.arange(4, dtype=HALF), "arange"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_was_not_read_is_refused_by_name(name: str) -> None:
    """With the way out."""
    case, match = REFUSED[name]
    with (
        flagged("allow_fp16_accumulation", name.startswith("fp16")),
        emulate(device="H100"),
        pytest.raises(UnemulatedOperatorError, match=match),
    ):
        case()


def test_unread_operators_may_be_assumed() -> None:
    """They compute as without a device; what was read, as it was."""
    a = drawn(7, 16, 10)
    with emulate(softfloat.Environment(nan="nvidia")):
        wanted = F.gelu(a) @ a.t()
        without = torch.sigmoid(drawn(8, 4096))
    with emulate(device="H100", unread="assume"):
        found = F.gelu(a) @ a.t()
        read = torch.sigmoid(torch.tensor([0x9D80], dtype=torch.int32).to(torch.int16).view(HALF))
    assert torch.equal(found, wanted)
    assert codes(read).tolist() == [0x37FA]
    assert without.dtype == HALF


def test_an_optimiser_and_its_model_run() -> None:
    """Foreach additions are those of single tensors."""
    model = torch.nn.Linear(16, 8, dtype=HALF)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    before = model.weight.detach().clone()
    with emulate(device="H200"):
        loss = model(x[:, :16].contiguous()).float().square().mean()
        loss.backward()
        optimiser.step()
        singly = torch.add(before, model.weight.grad, alpha=-0.1)
        [together] = torch._foreach_add([before], [model.weight.grad], alpha=-0.1)
    assert torch.equal(model.weight, singly)
    assert torch.equal(together, singly)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"device": "H300"}, "device must be .*H100.*H200"),
        ({"split": 2}, "split must be None without a device"),
        ({"unread": "assume"}, "unread must be 'refuse' without a device"),
        ({"device": "H100", "unread": "guess"}, "unread must be"),
        ({"device": "H100", "split": 0}, "split must be"),
        ({"device": "H100", "matmul": softfloat.accumulators.fma("float32")}, "matmul and convolution must be None"),
        ({"device": "H100", "quantize": "mxfp8"}, "quantize must be None with device='H100'"),
        ({"device": "H100", "environment": softfloat.Environment(rounding="RTZ")}, "rounding must be"),
    ],
)
def test_arguments(options: dict[str, Any], match: str) -> None:
    """Errors name them."""
    with pytest.raises(ValueError, match=match):
        emulate(**options)
