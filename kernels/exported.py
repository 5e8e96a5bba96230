"""Object code for other languages, without Python, Numba or an allocator behind it.

`python -m softfloat.kernels.exported` reads a job (JSON) and writes object code. It runs in a process of its own, so that the bytes
hang neither on what was compiled before nor on this machine's CPU. Arrays that kernels make live on the caller's stack.
"""

import base64
import contextlib
import hashlib
import json
import re
import sys

import llvmlite
import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import cgutils
from numba.core.registry import cpu_target

from . import compile_cache
from .entries import LONG, MODE_BITS, REFUSAL, STOCHASTIC, UP_OR_DOWN, WIDTH_SHIFT, entry_of
from .jit import SOURCE_DIGEST

CODE, PART, BYTE, REAL, WORD = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.DoubleType(), ir.IntType(16)
VOID = ir.VoidType()
EXTENSIONS = {"uint8_t": "zeroext", "uint16_t": "zeroext", "uint32_t": "signext"}
EXTENSIONS |= dict.fromkeys(("int8_t", "int16_t", "int32_t"), "signext")
C_TYPES = {"uint8_t": BYTE, "uint16_t": WORD, "uint32_t": PART, "uint64_t": CODE, "int64_t": CODE, "double": REAL}
C_TYPES |= {"int8_t": BYTE, "int16_t": WORD, "int32_t": PART}
HEADER = 64
"""Bytes before an array of a kernel: Numba's count of references, the place of the data, and what lay here before."""


def function_type(signature):
    """The type of a kernel's function in LLVM."""
    return cpu_target.target_context.call_conv.get_function_type(signature.return_type, signature.args)


def lowered(kernel_name):
    """The LLVM module of a kernel, before any optimisation but inlining.

    References are counted and arrays made by `Writer.runtime`. What an exception would say is left out: nobody reads it, and it holds
    paths of sources.
    """
    function, signature = entry_of(kernel_name)
    uncalled = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = numba.njit(signature, nogil=True, error_model="numpy", **uncalled)(function).overloads[signature.args]
    text = str(made.library._final_module)
    for name in ("NRT_incref", "NRT_decref"):
        text = re.sub(rf"define linkonce_odr (void @{name}\([^)]*)\).*?\n}}\n", r"declare \1)\n", text, flags=re.DOTALL)
    for name, value in (("ol_raise_with_shape_context", "i32 1"), ("__excinfo_unwrap_args", "NULL")):
        body = rf"(?m)^(define [^\n@]*?(\S+) @[^\n(]*{name}[^\n]*\{{\n).*?^}}$"
        result = r"\1  ret \2 null\n}" if value == "NULL" else rf"\1  ret {value}\n}}"
        text = re.sub(body, result, text, flags=re.DOTALL)
    text = re.sub(r"(?m)^(@\.const\.picklebuf\S* = \w+ constant (\{[^}]*\})) \{.*\}$", r"\1 zeroinitializer", text)
    module = llvm.parse_assembly(text)
    own = symbol(kernel_name)
    module.get_function(made.fndesc.llvm_func_name).name = own
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != own:
            value.linkage = "internal"
    return module


def kept(kernel_name, job, its_machine):
    """A kernel's module, optimised for a job's machine; kept on disk beside what the loops were compiled to."""
    known = f"{kernel_name} {[job[name] for name in MACHINE]} {llvmlite.__version__}"
    name = f"exported-{hashlib.sha256(known.encode()).hexdigest()[:40]}.bc"
    path = None
    with contextlib.suppress(RuntimeError):  # there may be no place for it
        path = compile_cache.folder(SOURCE_DIGEST) / name
    content = path and compile_cache.read(path)
    if not content:
        module = lowered(kernel_name)
        module.triple, module.data_layout = job["triple"], str(its_machine.target_data)
        content = optimised(module, its_machine).as_bitcode()
        if path is not None:
            compile_cache.write(path, content)
    return llvm.parse_bitcode(content)


def symbol(kernel_name):
    """The name of a kernel in an object."""
    return "sf.kernel." + kernel_name.replace(" ", ".")


class Writer:
    """Functions in LLVM's language: those that kernels call, and those that others see."""

    def __init__(self, job, kinds):
        self.module = ir.Module("softfloat")
        self.kinds = kinds
        values = bytearray(base64.b64decode(job["values"]))  # of float64, the lowest byte first, as all targets have it
        tables = {"integers": CODE, "floats": REAL, "bytes": BYTE, "values": BYTE}
        self.integers, self.floats, self.bytes, self.values = (
            self._table(name, kind, (job | {"values": values})[name]) for name, kind in tables.items()
        )
        self.places = [self._place(name) for name in ("sf.arena.next", "sf.arena.end")]

    def _table(self, name, kind, values):
        made = ir.ArrayType(kind, max(len(values), 1))
        found = ir.GlobalVariable(self.module, made, f"sf.{name}")
        found.linkage, found.global_constant, found.align = "internal", True, 16
        found.initializer = made(values or [0])
        return found

    def _place(self, name):
        found = ir.GlobalVariable(self.module, CODE, name)
        found.linkage, found.storage_class = "internal", "thread_local(initialexec)"
        found.initializer = CODE(0)
        return found

    def function(self, name, result, arguments, linkage="internal"):
        """(function, builder at its start)."""
        made = ir.Function(self.module, ir.FunctionType(result, arguments), name)
        made.linkage = linkage
        made.attributes.add("nounwind")
        return made, ir.IRBuilder(made.append_basic_block())

    # -- what kernels call -------------------------------------------------------------------------------------------------

    def runtime(self):
        """Arrays from the arena that an entry has on its stack; the last one made goes first, as kernels do it."""
        pointer = BYTE.as_pointer()
        upto, end = self.places
        slot = CODE.as_pointer()

        def field(builder, header, number):
            return builder.inttoptr(builder.add(header, CODE(8 * number)), slot)

        made, builder = self.function("NRT_MemInfo_alloc_aligned", pointer, [CODE, PART], "external")
        size, align = made.args
        before = builder.load(upto)
        header = builder.and_(builder.add(before, CODE(15)), CODE(-16))
        align = builder.zext(align, CODE)
        data = builder.and_(builder.add(builder.add(header, CODE(HEADER - 1)), align), builder.neg(align))
        after = builder.add(data, size)
        fits = builder.icmp_unsigned("<=", after, builder.load(end))
        with builder.if_else(fits, likely=True) as (here, nowhere):
            with here:
                for number, value in enumerate((CODE(1), CODE(0), CODE(0), data, size, CODE(0), before, after)):
                    builder.store(value, field(builder, header, number))
                builder.store(after, upto)
                builder.ret(builder.inttoptr(header, pointer))
            with nowhere:
                builder.ret(ir.Constant(pointer, None))
        builder.unreachable()
        for name, step in (("NRT_incref", 1), ("NRT_decref", -1)):
            made, builder = self.function(name, VOID, [pointer], "external")
            header = builder.ptrtoint(made.args[0], CODE)
            with builder.if_then(builder.icmp_unsigned("!=", header, CODE(0))):
                count = builder.add(builder.load(field(builder, header, 0)), CODE(step))
                builder.store(count, field(builder, header, 0))
                if step < 0:
                    last = builder.icmp_unsigned("==", builder.load(field(builder, header, 7)), builder.load(upto))
                    free = builder.and_(builder.icmp_unsigned("==", count, CODE(0)), last)
                    with builder.if_then(free):
                        builder.store(builder.load(field(builder, header, 6)), upto)
            builder.ret_void()

    def call(self, builder, kernel_name, arguments, arena=0):
        """A kernel's integer; REFUSED if it failed, which it does only where the arena is too small."""
        name = symbol(kernel_name)
        kind = self.kinds[kernel_name]
        kernel_function = self.module.globals.get(name) or ir.Function(self.module, kind, name)
        with builder.goto_entry_block():
            result = builder.alloca(CODE)
            exception = builder.alloca(kind.args[1].pointee)
            stack = builder.alloca(BYTE, CODE(arena)) if arena else None
        upto, end = self.places
        if stack is not None:
            before = builder.load(upto), builder.load(end)
            bottom = builder.ptrtoint(stack, CODE)
            builder.store(bottom, upto)
            builder.store(builder.add(bottom, CODE(arena)), end)
        status = builder.call(kernel_function, [result, exception, *arguments])
        if stack is not None:
            builder.store(before[0], upto)
            builder.store(before[1], end)
        done = builder.icmp_unsigned("==", status, PART(0))
        return builder.select(done, builder.load(result), CODE(REFUSAL))

    def at(self, table, place):
        """The address of a table's entry."""
        return table.gep([PART(0), CODE(place)])

    # -- what others see ---------------------------------------------------------------------------------------------------

    def exported(self, name, result, arguments):
        """(function, builder) of a C function; results come extended as every convention wants them."""
        made, builder = self.function(name, C_TYPES[result], arguments, "external")
        extension = EXTENSIONS.get(result)
        if extension:
            made.return_value.add_attribute(extension)
        return made, builder

    def core(self, operation):
        """An elementwise kernel under any mode: core(a, b, c, rule, bits, limits, tables)."""
        name = f"sf.any.{operation}"
        if name not in self.module.globals:
            arguments = [CODE] * 6 + [CODE.as_pointer(), REAL.as_pointer()] * 2
            made, builder = self.function(name, CODE, arguments)
            made.attributes.add("noinline")
            with builder.if_then(self.stochastic(builder, made.args[3])):
                builder.ret(self.call(builder, f"drawn {operation}", made.args))
            builder.ret(self.call(builder, f"selected {operation}", made.args))
        return self.module.globals[name]

    def stochastic(self, builder, rule):
        """Whether a rule draws."""
        return builder.or_(self.mode_is(builder, rule, STOCHASTIC), self.mode_is(builder, rule, UP_OR_DOWN))

    def mode_is(self, builder, rule, mode):
        """Whether a rule has a rounding mode."""
        return builder.icmp_unsigned("==", builder.and_(rule, CODE(MODE_BITS)), CODE(mode))

    def wide(self, builder, value, kind=""):
        """An argument as an integer of 64 bits."""
        if value.type == REAL:
            return builder.bitcast(value, CODE)
        if value.type == CODE:
            return value
        return builder.sext(value, CODE) if kind.startswith("int") else builder.zext(value, CODE)

    def narrow(self, builder, value, kind):
        """Of a kernel's integer what a function returns."""
        if kind == REAL:
            return builder.bitcast(value, REAL)
        return value if kind == CODE else builder.trunc(value, kind)

    def flags_of(self, builder, value):
        """The flags of a kernel's integer."""
        return builder.trunc(builder.lshr(value, CODE(32)), BYTE)

    def store_flags(self, builder, place, flags):
        """Flags where the caller wants them: nowhere, if the pointer is null."""
        with builder.if_then(builder.icmp_unsigned("!=", builder.ptrtoint(place, CODE), CODE(0))):
            builder.store(flags, place)

    def one(self, builder, row_, codes, rule, bits=None):
        """(result, flags) of an element: of a kernel that draws nothing, or of one that may. Results are integers of 64 bits."""
        full = [*codes, *[codes[-1]] * (3 - len(codes))]
        place = None
        if row_["kernel"].split()[1:] and row_["kernel"].split()[1] in LONG:
            with builder.goto_entry_block():
                place = builder.alloca(CODE)
            builder.store(CODE(0), place)
            full[1] = builder.ptrtoint(place, CODE)
        if "values" in row_:
            full[2] = builder.ptrtoint(self.at(self.values, row_["values"]), CODE)
        si, sf, ti, tf = row_["tables"]
        tables = [
            self.at(self.integers, si),
            self.at(self.floats, sf),
            self.at(self.integers, ti),
            self.at(self.floats, tf),
        ]
        arguments = [*full, rule, CODE(0) if bits is None else bits, CODE(row_["limits"]), *tables]
        if bits is None:
            value = self.call(builder, row_["kernel"], arguments)
        else:
            value = builder.call(self.core(row_["kernel"].split()[1]), arguments)
        return value if place is None else builder.load(place), self.flags_of(builder, value)

    def address(self, builder, rule, seed, stream, position):
        """Random bits of an address, 0 under a rule that draws nothing."""
        with builder.goto_entry_block():
            place = builder.alloca(CODE)
        builder.store(CODE(0), place)
        with builder.if_then(self.stochastic(builder, rule)):
            field = builder.and_(builder.lshr(rule, CODE(WIDTH_SHIFT)), CODE(63))
            width = builder.select(builder.icmp_unsigned("==", field, CODE(0)), CODE(52), field)
            width = builder.select(self.mode_is(builder, rule, UP_OR_DOWN), CODE(1), width)
            builder.store(self.call(builder, "random", [seed, stream, position, width]), place)
        return builder.load(place)

    def scalar(self, row_):
        """result f(codes..., rule, [bits | seed, stream, position,] *flags)."""
        kinds = [C_TYPES[kind] for kind in row_["takes"]]
        drawing = {"": [], "random": [CODE], "at": [CODE] * 3}[row_["form"]]
        made, builder = self.exported(row_["name"], row_["gives"], [*kinds, PART, *drawing, BYTE.as_pointer()])
        codes = [self.wide(builder, x, kind) for x, kind in zip(made.args, row_["takes"], strict=False)]
        rule = self.wide(builder, made.args[len(kinds)])
        bits = None
        if row_["form"] == "random":
            bits = made.args[-2]
        elif row_["form"] == "at":
            bits = self.address(builder, rule, *made.args[-4:-1])
        value, flags = self.one(builder, row_, codes, rule, bits)
        self.store_flags(builder, made.args[-1], flags)
        builder.ret(self.narrow(builder, value, C_TYPES[row_["gives"]]))

    def array(self, row_):
        """flags f(n, *codes..., *results, *flags, rule [, seed, stream, position]): element i draws at position + i."""
        kinds, result = [C_TYPES[kind] for kind in row_["takes"]], C_TYPES[row_["gives"]]
        places = [kind.as_pointer() for kind in (*kinds, result, BYTE)]
        drawing = [CODE] * 3 if row_["form"] == "array_at" else []
        made, builder = self.exported(row_["name"], "uint8_t", [CODE, *places, PART, *drawing])
        count, *pointers = made.args[: len(places) + 1]
        rule = self.wide(builder, made.args[len(places) + 1])
        seen = builder.alloca(BYTE)
        builder.store(BYTE(0), seen)
        with cgutils.for_range(builder, count) as loop:
            i, bits = loop.index, None
            loaded = [builder.load(builder.gep(x, [i])) for x in pointers[: len(kinds)]]
            codes = [self.wide(builder, x, kind) for x, kind in zip(loaded, row_["takes"], strict=True)]
            if drawing:
                seed, stream, position = made.args[-3:]
                bits = self.address(builder, rule, seed, stream, builder.add(position, i))
            value, flags = self.one(builder, row_, codes, rule, bits)
            builder.store(self.narrow(builder, value, result), builder.gep(pointers[-2], [i]))
            with builder.if_then(builder.icmp_unsigned("!=", builder.ptrtoint(pointers[-1], CODE), CODE(0))):
                builder.store(flags, builder.gep(pointers[-1], [i]))
            builder.store(builder.or_(builder.load(seen), flags), seen)
        builder.ret(builder.load(seen))

    def decoding(self, row_):
        """double f(code)."""
        made, builder = self.exported(row_["name"], "double", [C_TYPES[row_["takes"][0]]])
        value, _ = self.one(builder, row_, [self.wide(builder, made.args[0])], CODE(0))
        builder.ret(builder.bitcast(value, REAL))

    def random_bits(self, row_):
        """uint64_t f(seed, stream, position, width)."""
        made, builder = self.exported(row_["name"], "uint64_t", [CODE, CODE, CODE, PART])
        seed, stream, position, width = made.args
        builder.ret(self.call(builder, "random", [seed, stream, position, self.wide(builder, width)]))

    def generator(self, row_):
        """uint64_t f(*state, width), or f(*state, seed, modifier): random bits of a generator, and its first state."""
        kinds = [CODE.as_pointer(), *([CODE, PART] if row_["seeds"] else [PART])]
        made, builder = self.exported(row_["name"], "uint64_t", kinds)
        state, *numbers = (
            builder.ptrtoint(x, CODE) if x.type == kinds[0] else self.wide(builder, x) for x in made.args
        )
        arguments = [CODE(0), *numbers] if row_["seeds"] else [*numbers, CODE(0), CODE(0)]
        if not row_["seeds"]:  # no bits at all is refused, and what seeds elsewhere
            arguments[0] = builder.select(builder.icmp_unsigned("==", numbers[0], CODE(0)), CODE(64), numbers[0])
        builder.ret(self.call(builder, "xoroshiro", [state, *arguments]))

    def dot(self, row_):
        """result f(k, *a, *b, [c,] rule, [seed, stream, position,] *flags)."""
        first, second, third = (C_TYPES[kind] for kind in row_["takes"])
        addend = [third] if row_["addend"] else []
        drawing = [CODE] * 3 if row_["form"] == "at" else []
        arguments = [PART, first.as_pointer(), second.as_pointer(), *addend, PART, *drawing, BYTE.as_pointer()]
        made, builder = self.exported(row_["name"], row_["gives"], arguments)
        k, a, b, *rest = made.args
        c = self.wide(builder, rest.pop(0)) if addend else CODE(0)
        rule = self.wide(builder, rest.pop(0))
        seed, stream, position = rest[:3] if drawing else (CODE(0), CODE(0), CODE(0))
        a, b = (builder.bitcast(x, BYTE.as_pointer()) for x in (a, b))
        tables = [self.at(self.integers, 0), self.at(self.floats, 0), self.at(self.bytes, 0)]
        numbers = [c, CODE(row_["addend"]), rule, seed, stream, position, CODE(row_["plan"])]
        call = [self.wide(builder, k), a, b, *numbers, *tables]
        result = builder.alloca(CODE)
        builder.store(CODE(REFUSAL), result)
        draws = self.stochastic(builder, rule)
        served = builder.not_(draws) if not drawing else ir.Constant(ir.IntType(1), 1)
        with builder.if_then(served):
            builder.store(self.call(builder, "dot", call, row_["arena"]), result)
        value = builder.load(result)
        self.store_flags(builder, made.args[-1], self.flags_of(builder, value))
        builder.ret(self.narrow(builder, value, C_TYPES[row_["gives"]]))


MACHINE = ("triple", "cpu", "features", "abi")
FORMS = {"": "scalar", "random": "scalar", "at": "scalar", "array": "array", "array_at": "array"}


def machine(job):
    """LLVM's machine for a job's target."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(job["triple"])
    options = {"cpu": job["cpu"], "features": job["features"], "reloc": "pic", "codemodel": "default"}
    return target.create_target_machine(opt=2, abiname=job["abi"], **options)


def optimised(module, its_machine):
    """The module as LLVM makes it faster."""
    builder = llvm.create_pass_builder(its_machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return module


def object_code(job):
    """The object of a job's functions."""
    its_machine = machine(job)
    kinds = {name: function_type(entry_of(name)[1]) for name in job["kernels"]}
    writer = Writer(job, kinds)
    writer.runtime()
    for row_ in job["functions"]:
        getattr(writer, FORMS.get(row_["form"], row_["form"]) if row_["kernel"] != "dot" else "dot")(row_)
    whole = llvm.parse_assembly(str(writer.module))
    whole.triple, whole.data_layout = job["triple"], str(its_machine.target_data)
    for name in job["kernels"]:
        whole.link_in(kept(name, job, its_machine))
    seen = {row_["name"] for row_ in job["functions"]}
    hide(whole, seen)
    text = str(optimised(whole, its_machine))
    for name, call in (("set", MEMSET), ("copy", MEMCPY)):
        text = call.sub(lambda found, name=name: moving(name, *found.groups()), text)
    declared = [str(x) for x in llvm.parse_assembly(str(blocks())).functions]
    declared = [re.sub(r"^define (.*?) \{.*", r"declare \1\n", x, flags=re.DOTALL) for x in declared]
    whole = llvm.parse_assembly(text + "\n".join(declared))
    whole.link_in(llvm.parse_assembly(str(blocks())))
    hide(whole, seen)
    return its_machine.emit_object(whole)


def hide(module, seen):
    """Make everything but the functions to be seen the module's own, under names that say nothing of where it was made."""
    for number, value in enumerate((*module.functions, *module.global_variables)):
        if not value.is_declaration and value.name not in seen:
            value.linkage = "internal"
            if not value.name.startswith(OWN):
                value.name = f"{OWN}{number}"


OWN = "sf.own."
POINTER = r"(\S+) (?:[a-z][^,@%]* )?([%@]\S+)"
MEMSET = re.compile(rf"call void @llvm\.memset\.\S+?\({POINTER}, i8 (\S+), i64 (\S+), i1 false\)")
MEMCPY = re.compile(rf"call void @llvm\.mem(?:cpy|move)\.\S+?\({POINTER}, {POINTER}, i64 (\S+), i1 false\)")


def moving(name, *found):
    """A call of one of `blocks` in place of one that LLVM would turn into one of the C library's."""
    kind, to, *value, size = found
    source = f"i8 {value[0]}" if name == "set" else f"{kind} {value[1]}"
    return f"call void @{OWN}{name}({kind} {to}, {source}, i64 {size})"


def blocks():
    """Memory set and copied, byte by byte, from the end or from the start as the places ask for."""
    module = ir.Module("blocks")
    pointer = BYTE.as_pointer()
    for name, second in (("set", BYTE), ("copy", pointer)):
        made = ir.Function(module, ir.FunctionType(VOID, [pointer, second, CODE]), OWN + name)
        builder = ir.IRBuilder(made.append_basic_block())
        to, value, size = made.args
        with cgutils.for_range(builder, size) as loop:
            i = loop.index
            if name == "copy":
                back = builder.icmp_unsigned("<", builder.ptrtoint(value, CODE), builder.ptrtoint(to, CODE))
                i = builder.select(back, builder.sub(builder.sub(size, CODE(1)), i), i)
            byte = value if name == "set" else builder.load(builder.gep(value, [i]))
            builder.store(byte, builder.gep(to, [i]))
        builder.ret_void()
    return module


def main():
    """A job from standard input, its object to standard output."""
    sys.stdout.buffer.write(object_code(json.load(sys.stdin)))
