"""The presets as rows: what each is called, which parameters it has, where its rule comes from, and how sure that is.

`softfloat accumulators`, the documentation, `identify` and the tests read them; the functions are in the files beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["MODES", "PRESET_ROWS", "STANDINGS", "Row"]

STANDINGS = MappingProxyType(
    {
        "definition": "a standard or a paper states the sum",
        "measured": "rows read off devices agree, for the operands that were tried",
        "pseudo-code": "the vendor's manual defines every bit",
        "documented": "a manual says how it works, and no device was at hand",
        "model": "a published model that others have compared with devices",
        "assumption": "words only: the order of the sum and its roundings are assumed",
    }
)
"""How sure a rule is -> what that means; from the surest to the least sure."""

MODES = ("nearest_even", "toward_zero", "toward_positive", "toward_negative")
"""Rounding modes that FPCR, MXCSR and frm can name."""


class Row(NamedTuple):
    """One preset.

    Attributes
    ----------
    name : str
        The function in `softfloat.accumulators`.
    parameters : mapping of str to tuple
        Its parameters, each with the values that give different sums; empty: any format, or any number. Not every
        combination exists: the function refuses the others.
    example, meaning : str
        A call, and what it does in one line.
    source : str
        Where the rule is written.
    standing : str
        One of `STANDINGS`.
    """

    name: str
    parameters: Mapping[str, tuple[Any, ...]]
    example: str
    meaning: str
    source: str
    standing: str


class Array(NamedTuple):
    """One row of `ARRAYS`: a matrix unit of which words alone are public."""

    name: str
    unit: str
    inputs: tuple[str, ...]
    flush: bool
    words: str
    source: str


ARRAYS = (
    Array(
        "tpu_mxu",
        "Google TPU, MXU",
        ("bfloat16",),
        True,
        "bfloat16 products, float32 sums; order, roundings and subnormals are not published, XLA flushes them on TPUs",
        "Google Cloud TPU documentation; XLA's precision options: words only",
    ),
    Array(
        "gaudi_mme",
        "Intel Gaudi, MME",
        ("bfloat16", "float16", "float8_e5m2", "float8_e4m3", "float8_e4m3fn"),
        False,
        "float32 sums; e4m3 reaches 240 on Gaudi 2 (float8_e4m3) and 448 on Gaudi 3 (float8_e4m3fn)",
        "Intel Gaudi documentation: words only",
    ),
    Array(
        "ascend_cube",
        "Huawei Ascend, cube unit",
        ("float16", "bfloat16"),
        False,
        "float32 sums of 16 x 16 x 16 blocks; the order inside a block is not published",
        "Huawei CANN documentation; arXiv 2507.23387: words only",
    ),
    Array(
        "trainium_pe",
        "AWS Trainium, PE array",
        ("bfloat16", "float16", "tfloat32", "float8_e5m2"),
        False,
        "float32 sums in PSUM; order and roundings are not published",
        "AWS Neuron documentation, Rounding modes: words only",
    ),
)
"""Each is taken for `systolic`."""

FP8 = ("float8_e4m3fn", "float8_e5m2")
QUARTERS = ("float8_e4m3fnuz", "float8_e5m2fnuz")
BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256)
ARM = "Arm Architecture Reference Manual for A-profile, {}: pseudo-code; FPCR.AH = 0"
BFDOT = {"ebf": (False, True), "rounding": MODES}
IPU = {
    "partials": ("float32", "float16"),
    "inputs": ("float16", "float32", *QUARTERS),
    "mode": ("exact", "aligned", "chained"),
    "rounding": ("nearest_even", "toward_zero"),
    "stochastic": (True, False),
}

PRESET_ROWS = {
    row.name: row
    for row in (
        Row(
            "fma",
            {"fmt": ()},
            "fma('float16')",
            "one fused multiply-add per product",
            "IEEE 754-2019 5.4.1 fusedMultiplyAdd",
            "definition",
        ),
        Row(
            "mul_add",
            {"fmt": ()},
            "mul_add('float16')",
            "product rounded, then sum rounded",
            "IEEE 754-2019 5.4.1 multiplication, addition",
            "definition",
        ),
        Row(
            "compensated",
            {"fmt": (), "method": ("kahan", "neumaier", "two_term")},
            "compensated('float16', 'kahan')",
            "products rounded, sums whose errors are made up for",
            "Kahan, CACM 8 (1965); Neumaier, ZAMM 54 (1974); Knuth, TAOCP 2, 4.2.2, theorem B",
            "definition",
        ),
        Row(
            "fixed_point",
            {
                "bits": (),
                "last": (),
                "fmt": (),
                "overflow": ("wrap", "saturate"),
                "cut": ("toward_negative", "toward_zero"),
            },
            "fixed_point(32, -16)",
            "products cut to a grid and added in two's complement",
            "two's complement, as integer adders do; Kulisch, Computer Arithmetic and Validity (2008), for wide registers",
            "definition",
        ),
        Row(
            "exact",
            {"fmt": ()},
            "exact('float32')",
            "exact sum, one rounding",
            "Kulisch, Computer Arithmetic and Validity (2008); IEEE 754-2019 9.4 leaves it open",
            "definition",
        ),
        Row(
            "pairwise",
            {"fmt": ()},
            "pairwise('float16')",
            "sums in pairs, pairs of pairs ...",
            "Higham, The accuracy of floating point summation, SIAM J. Sci. Comput. 14 (1993)",
            "definition",
        ),
        Row(
            "chunked",
            {"length": (), "inner": (), "outer": (), "scaling": ()},
            "chunked(64, 'float16', 'float32')",
            "chunks with sums of their own, added up in another format",
            "Wang et al., Training Deep Neural Networks with 8-bit Floating Point Numbers, NeurIPS 2018",
            "definition",
        ),
        Row(
            "vdpbf16ps",
            {},
            "vdpbf16ps()",
            "x86 AVX512_BF16: second of each pair first, DAZ, FTZ",
            "Intel SDM, VDPBF16PS; checked against the instruction",
            "measured",
        ),
        Row(
            "tensor_core",
            {
                "arch": (),
                "input": (),
                "output": ("float32", "float16"),
                "instruction": (),
                "zero_exponent": (None, -126),
                "exponent_floor": (),
                "positive_zeros": (True, False),
            },
            "tensor_core('H100')",
            "NVIDIA: blocks aligned to the largest exponent, cut, added, cut",
            "rows read off H100 and H200; Khattak and Mikaitis, arXiv 2512.07004, measured rows; Microsoft MMA-Sim",
            "measured",
        ),
        Row(
            "torch_mm",
            {
                "operation": ("mm", "linear", "addmm", "fp16_accumulation", "scaled_mm", "scaled_mm_fast"),
                "input": ("float16", "bfloat16", "tfloat32", *FP8),
                "k": (),
                "split": (),
            },
            "torch_mm('mm', 'bfloat16')",
            "PyTorch 2.11 on an H100: the products of its library's kernels",
            "rows read off an H100 under PyTorch 2.11 and CUDA 13.0",
            "measured",
        ),
        Row(
            "amp",
            IPU,
            "amp('half')",
            "IPU AMP: dot-4 phases in single, partials stored every 16 inputs",
            "Graphcore ISA documents; poplibs inlineAssemblerConv.hpp, Convolution.hpp: documented behaviour",
            "documented",
        ),
        Row(
            "slic",
            {"window": (3, 4), **IPU},
            "slic('half', window=4)",
            "IPU slim convolution: one phase per position of a short window",
            "Graphcore ISA documents; poplibs inlineAssemblerSLIC.hpp: documented behaviour",
            "documented",
        ),
        Row(
            "rvbna",
            {"n": BLOCKS, "input": ("bfloat16", *FP8)},
            "rvbna(4)",
            "RISC-V bulk normalisation: aligned, cut to odd, added, rounded to odd, then added to c",
            "RISC-V unprivileged ISA, RVBNA (drafts of Zvbdot and Zvldot): pseudo-code; Spike's bulknormdot.h, rows of it",
            "pseudo-code",
        ),
        Row(
            "zvfbfwma",
            {"input": ("bfloat16", "float16")},
            "zvfbfwma()",
            "RISC-V vfwmaccbf16, and vfwmacc of halves: fused multiply-adds to float32",
            "RISC-V unprivileged ISA, Zvfbfwma and Zvfh: pseudo-code",
            "pseudo-code",
        ),
        Row(
            "amx",
            {"input": ("bfloat16", "float16", *FP8)},
            "amx('bfloat16')",
            "Intel AMX tiles: two chains, even and odd, or of pair sums; then added to c",
            "Intel ISA extensions reference, TDPBF16PS (as a Xeon computes it), TDPFP16PS and AMX-FP8 (no silicon): pseudo-code, in Bochs' order",
            "pseudo-code",
        ),
        Row(
            "vdpphps",
            {},
            "vdpphps()",
            "x86 AVX10.2: pairs of halves, second first, DAZ, FTZ",
            "Intel AVX10.2 specification, VDPPHPS: pseudo-code, in Bochs' order; no silicon",
            "pseudo-code",
        ),
        Row(
            "arm_bfdot",
            BFDOT,
            "arm_bfdot()",
            "Arm BFDOT: pairs rounded to odd, or with EBF summed exactly, then added to c",
            ARM.format("BFDotAdd"),
            "pseudo-code",
        ),
        Row(
            "arm_bfmmla",
            BFDOT,
            "arm_bfmmla()",
            "Arm BFMMLA: two BFDOT steps for each output",
            ARM.format("BFMatMulAddH"),
            "pseudo-code",
        ),
        Row(
            "arm_bfmlal",
            {},
            "arm_bfmlal()",
            "Arm BFMLALB or BFMLALT: fused multiply-adds to float32",
            ARM.format("BFMulAddH"),
            "pseudo-code",
        ),
        Row(
            "arm_fdot",
            {"fz16": (False, True)},
            "arm_fdot()",
            "Arm FDOT of halves: exact pairs rounded to float32, then added to c",
            ARM.format("FPDotAdd"),
            "pseudo-code",
        ),
        Row(
            "arm_fmmla",
            {"input": ("float16", "float32"), "fz16": (False, True)},
            "arm_fmmla()",
            "Arm FMMLA: two pairs of halves, or two products of singles, rounded, added, then added to c",
            ARM.format("FPMatMulAddH and FPMatMulAdd"),
            "pseudo-code",
        ),
        Row(
            "arm_fp8dot",
            {"ways": (1, 2, 4, 8), "output": ("float32", "float16"), "saturate": (False, True)},
            "arm_fp8dot(4)",
            "Arm FP8 FMLAL, FDOT and FMMLA: c and all products, one rounding",
            ARM.format("FP8DotAddFP"),
            "pseudo-code",
        ),
        Row(
            "amd_mfma",
            {
                "arch": ("CDNA1", "CDNA2", "CDNA3"),
                "input": ("float32", "float16", "bfloat16", "bfloat16_1k", "tfloat32", *QUARTERS),
            },
            "amd_mfma('CDNA3', 'float16')",
            "AMD matrix cores: sums in pairs, or aligned and floored",
            "Microsoft MMA-Sim, arXiv 2511.10909: a published model, no measured rows",
            "model",
        ),
        Row(
            "systolic",
            {"input": (), "depth": (), "fmt": (), "flush": (False, True)},
            "systolic('bfloat16')",
            "a column of fused multiply-adds, and sums of columns",
            "Kung, Why systolic architectures?, Computer 15 (1982), for the order; roundings are assumed",
            "assumption",
        ),
        *(
            Row(
                array.name,
                {"input": array.inputs},
                f"{array.name}()",
                f"{array.unit}: assumed to be a column of fused multiply-adds to float32",
                array.source,
                "assumption",
            )
            for array in ARRAYS
        ),
    )
}
"""Name -> row."""
