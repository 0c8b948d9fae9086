#!/usr/bin/env python3
"""Derives from the records' schema lines what C++ cannot: declarations per family, the C++ face's
methods, and the Python stub. Writes a file only when its text changed, so that nothing rebuilds
for no reason."""

import argparse
import pathlib
import re

from stubs import stub_files

STRING = r'"(?:[^"\\]|\\.)*"'
FORMS = {"kFunction": 1, "kMethod": 2, "kInplace": 4, "kOut": 8}
DEFAULT_FORMS = 3

CPP_TYPES = {
    "Tensor": ("const TensorBase&", "const TensorBase&"),
    "Tensor|Scalar": ("const Value&", "const Value&"),
    "Scalar": ("Scalar", "std::optional<Scalar>"),
    "Number": ("Scalar", "std::optional<Scalar>"),
    "int": ("int64_t", "std::optional<int64_t>"),
    "float": ("double", "std::optional<double>"),
    "bool": ("bool", "std::optional<bool>"),
    "int[]": ("std::span<const int64_t>", "std::optional<std::span<const int64_t>>"),
    "Tensor[]": ("std::span<const TensorBase>", "std::span<const TensorBase>"),
    "dtype": ("DType", "std::optional<DType>"),
    "device": ("Device", "std::optional<Device>"),
    "str": ("std::string_view", "std::optional<std::string_view>"),
    "float[]": ("std::span<const double>", "std::optional<std::span<const double>>"),
    "Tensor?[]": ("std::span<const TensorBase>", "std::span<const TensorBase>"),
    "memory_format": ("MemoryFormat", "std::optional<MemoryFormat>"),
    "layout": ("int64_t", "std::optional<int64_t>"),
    "Generator": ("Mt19937Generator*", "Mt19937Generator*"),
}
RESULTS = {
    "Tensor": ("TensorBase", "Tensor"),
    "Tensor[]": ("std::vector<TensorBase>", "std::vector<Tensor>"),
    "bool": ("TensorBase", "bool"),
    "int": ("TensorBase", "int64_t"),
    "float": ("TensorBase", "double"),
    "Scalar": ("TensorBase", "double"),
}


class Arg:
    def __init__(self, text, keyword_only):
        kind, rest = text.split(" ", 1)
        self.optional = kind.endswith("?")
        self.schema_type = kind.rstrip("?")
        if re.fullmatch(r"int\[\d\]", self.schema_type):
            self.schema_type = "int[1]"
        self.kind = self.schema_type
        if self.kind in ("int[1]", "int..."):
            self.kind = "int[]"
        elif self.kind == "Tensor...":
            self.kind = "Tensor[]"
        self.name, _, default = rest.partition("=")
        self.name = self.name.strip()
        self.default = default if _ else None
        self.keyword_only = keyword_only

    def cpp_type(self):
        return CPP_TYPES[self.kind][1 if self.optional else 0]

    def cpp_default(self):
        d = self.default
        if d is None:
            return ""
        if d == "None":
            if self.kind == "Tensor":
                return " = TensorBase()"
            if self.kind == "Generator":
                return " = nullptr"
            if self.kind in ("Tensor[]", "Tensor?[]"):
                return " = {}"
            return " = Value()" if self.kind == "Tensor|Scalar" else " = std::nullopt"
        if d in ("True", "False"):
            d = d.lower()
        elif d == "()":
            d = "{}"
        elif d.endswith("inf"):
            d = d.replace("inf", "INFINITY")
        elif self.kind == "int[]":
            # A list that outlives the call: defaults are small numbers.
            return f" = detail::one_int<{d}>"
        return f" = Scalar({d})" if self.kind == "Scalar" else f" = {d}"


class Op:
    def __init__(self, schema, forms, family, doc):
        head, _, rest = schema.partition("(")
        args, _, results = rest.rpartition("->")
        args = args.strip()[:-1]
        self.path = head
        self.name = head.removeprefix("nn.functional.").replace(".", "_")
        if forms is None:
            forms = FORMS["kFunction"] if "." in head else DEFAULT_FORMS
        self.overload = 0  # its place among those of the same name
        self.family = family
        self.forms = forms
        self.doc = doc
        self.args = []
        keyword_only = False
        for text in filter(None, (a.strip() for a in args.split(","))):
            if text == "*":
                keyword_only = True
            else:
                self.args.append(Arg(text, keyword_only))
        self.results = results.strip()
        self.outputs = self.results.count(",") + 1

    def cpp_args(self):
        """In the order of C++: what programs hardly ever name comes last, so that they write
        rand({2, 3}, kFloat32, device)."""
        rare = ("Generator", "layout", "memory_format")
        return sorted(
            self.args,
            key=lambda a: a.keyword_only and (a.kind in rare or a.name == "pin_memory"),
        )

    def params(self, defaults, skip_self=False):
        args = [a for a in self.cpp_args() if not skip_self or a is not self.args[0]]
        return ", ".join(
            a.cpp_type() + " " + a.name + (a.cpp_default() if defaults else "") for a in args
        )

    def result(self):
        return RESULTS[self.results][0] if self.results in RESULTS else "Outputs"


def read_records(folder):
    ops = []
    for file in sorted(folder.glob("*/*.cpp")):
        text = file.read_text()
        for block in re.split(r"^TS_OP\(", text, flags=re.M)[1:]:
            field = re.search(r"\.schema\s*=\s*((?:" + STRING + r"\s*)+)", block)
            schema = "".join(s[1:-1] for s in re.findall(STRING, field.group(1)))
            schema = schema.replace('\\"', '"')
            found = re.search(r"\.forms\s*=\s*([^,]+),", block)
            forms = None
            if found:
                forms = sum(FORMS[w.strip()] for w in found.group(1).split("|"))
            doc = re.search(r"\.doc\s*=\s*((?:" + STRING + r"\s*)+)", block)
            doc = "".join(s[1:-1] for s in re.findall(STRING, doc.group(1))) if doc else ""
            op = Op(schema, forms, file.parent.name, doc)
            also = re.search(r"\.also\s*=\s*((?:" + STRING + r"\s*)+)", block)
            op.also = (
                "".join(s[1:-1] for s in re.findall(STRING, also.group(1))).split() if also else []
            )
            op.overload = sum(o.name == op.name for o in ops)
            ops.append(op)
    return ops


def function_text(op, inplace):
    name = op.name + ("_" if inplace else "")
    call = "dispatch_inplace" if inplace else "dispatch"
    args = ", ".join(f"Value({a.name})" for a in op.args)
    take = ".take()" if not inplace and op.outputs == 1 else ""
    if op.results == "Tensor[]" and not inplace:
        take = ".list()"
    result = "TensorBase" if inplace else op.result()
    return (
        f"{result} {name}({op.params(False)}) {{\n"
        f'  static const Op& op = get_op("{op.name}", {op.overload});\n'
        f"  Value args[] = {{{args}}};\n"
        f"  return {call}(op, args){take};\n}}\n"
    )


HEAD = "// Derived from the records; not to be edited.\n"


def family_files(family, ops):
    declare = [HEAD + '#pragma once\n#include "tessera/ops/call.h"\n\nnamespace tessera::op {\n']
    define = [HEAD + f'#include "tessera/gen/{family}.h"\n\nnamespace tessera::op {{\n']
    for op in ops:
        declare.append(f"{op.result()} {op.name}({op.params(True)});")
        define.append(function_text(op, False))
        if op.forms & FORMS["kInplace"]:
            declare.append(f"TensorBase {op.name}_({op.params(True)});")
            define.append(function_text(op, True))
    declare.append("\n}  // namespace tessera::op\n")
    define.append("}  // namespace tessera::op\n")
    return "\n".join(declare), "\n".join(define)


def face_result(op):
    """The C++ face's type of the result, and what makes it of the call's text."""
    if op.results not in RESULTS:
        types = ", ".join(["Tensor"] * op.outputs)
        return f"std::tuple<{types}>", lambda call: f"detail::as_tuple<{op.outputs}>({call})"
    kind = RESULTS[op.results][1]
    if kind == "Tensor":
        return kind, lambda call: f"Tensor({call})"
    if op.results == "Tensor[]":
        return kind, lambda call: f"detail::as_list({call})"
    return kind, lambda call: f"static_cast<{kind}>(Tensor({call}).item())"


def face_files(ops):
    """The C++ face: declarations of Tensor's methods, of the functions beside it, and what defines
    both."""
    methods, functions, bodies = [], [], []
    seen = set()

    def add(declared, kind, name, params, scope, const, call):
        declared.append(f"{kind} {name}({params(True)}){const};")
        bodies.append(f"{kind} {scope}{name}({params(False)}){const} {{ return {call}; }}")

    for op in ops:
        key = (op.name, op.params(False))
        if op.name.startswith("_") or key in seen:
            continue
        seen.add(key)
        passed = ", ".join(a.name for a in op.cpp_args())
        kind, make = face_result(op)
        if op.forms & FORMS["kFunction"]:
            add(functions, kind, op.name, op.params, "", "", make(f"op::{op.name}({passed})"))
        if not op.args or op.args[0].kind != "Tensor":
            continue
        rest = ", ".join(["*this"] + [a.name for a in op.cpp_args()[1:]])

        def params(defaults, op=op):
            return op.params(defaults, skip_self=True)

        if op.forms & FORMS["kMethod"]:
            call = make(f"op::{op.name}({rest})")
            add(methods, kind, op.name, params, "Tensor::", " const", call)
        if op.forms & FORMS["kInplace"]:
            call = f"Tensor(op::{op.name}_({rest}))"
            add(methods, "Tensor", op.name + "_", params, "Tensor::", " const", call)
    # Programs write sizes as {2, 3} and lists as {a, b}, which a span cannot be made from.
    texts = (
        "\n".join(lines)
        .replace("std::span<const int64_t>", "Ints")
        .replace("std::span<const TensorBase>", "Tensors")
        for lines in (methods, functions, bodies)
    )
    methods, functions, bodies = texts
    source = f'#include "tessera/face/tensor.h"\n\nnamespace tessera {{\n{bodies}\n}}\n'
    return tuple(HEAD + text + "\n" for text in (methods, functions, source))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    ops = read_records(options.records)
    families = sorted({op.family for op in ops})
    gen = options.out / "tessera" / "gen"
    umbrella = HEAD + "#pragma once\n"
    for family in families:
        header, source = family_files(family, [o for o in ops if o.family == family])
        write(gen / f"{family}.h", header)
        write(gen / f"{family}.cpp", source)
        umbrella += f'#include "tessera/gen/{family}.h"\n'
    write(gen / "ops.h", umbrella)
    methods, functions, source = face_files(ops)
    write(gen / "face_methods.inc", methods)
    write(gen / "face_functions.inc", functions)
    write(gen / "face.cpp", source)
    for name, text in stub_files(ops).items():
        write(options.out / "python" / "tessera" / name, text)


if __name__ == "__main__":
    main()
