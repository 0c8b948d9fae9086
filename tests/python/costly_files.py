"""Files that stand for much more work than their bytes, and how long each takes to load.

    python costly_files.py [BYTES]    prints seconds and the answer for each

A million bytes load in well under a second of processor time, or are refused.
"""

import io
import json
import pickle
import struct
import sys
import time
import zipfile

MODULUS = 2**61 - 1  # of Python's hash of numbers: multiples of it have the same hash
HEAD = b"\x80\x02"


def archive(data):
    """A file of torch.save with this pickle."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        file.writestr("archive/data.pkl", data)
        file.writestr("archive/version", "3\n")
    return out.getvalue()


def get(index):
    return b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)


def put(index):
    return b"q" + bytes([index]) if index < 256 else b"r" + struct.pack("<I", index)


def number(value):
    if value < 2**31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value


def name(module, member):
    return f"c{module}\n{member}\n".encode()


def tower(depth=40, first=0):
    """Tuples whose parts are the one before, down to a number: 2 ** depth elements in the last."""
    return (
        b"K\x01\x85"
        + put(first)
        + b"".join(get(i) * 2 + b"\x86" + put(i + 1) for i in range(first, first + depth))
    )


def listed(*parts):
    """A list of the values that the parts push."""
    return HEAD + b"](" + b"".join(parts) + b"e."


def key_of_shared_tuples(size):
    return listed(tower(), b"}", get(40), b"K\x02s")


def keys_of_two_towers(size):
    """Equal tuples that are not the same object are compared part by part."""
    by_turns = get(16) + b"N" + get(56) + b"N"
    return listed(tower(16), tower(16, 40), b"}(", by_turns * (size // 6), b"u")


def set_of_shared_tuples(size):
    return listed(tower(), name("builtins", "set"), b"](", get(40), b"e\x85R")


def frozensets_of_shared_tuples(size):
    return listed(tower(), name("builtins", "frozenset"), b"](", get(40), b"e\x85R")


def counter_of_shared_tuples(size):
    return listed(tower(), name("collections", "Counter"), b"}", get(40), b"K\x02s\x85R")


def keys_with_one_hash(size):
    keys = b"".join(number(i * MODULUS) + b"N" for i in range(1, size // 13))
    return HEAD + b"}(" + keys + b"u."


def batches_with_one_hash(size):
    keys = (number(i * MODULUS) + b"N" for i in range(1, size // 16))
    return HEAD + b"}" + b"".join(b"(" + key + b"u" for key in keys) + b"."


def tuples_with_one_hash(size):
    keys = b"".join(number(i * MODULUS) + b"\x85N" for i in range(1, size // 14))
    return HEAD + b"}(" + keys + b"u."


def complex_numbers_with_one_hash(size):
    # hash(complex(a, b)) is hash(a) + 1000003 * hash(b)
    one = (
        get(0) + b"G" + struct.pack(">d", -1000003.0 * i) + b"G" + struct.pack(">d", i) + b"\x86RN"
        for i in range(1, size // 24)
    )
    return listed(name("builtins", "complex"), put(0), b"}(", *one, b"u")


def ordered_pairs_with_one_hash(size):
    pairs = b"".join(number(i * MODULUS) + b"N\x86" for i in range(1, size // 14))
    return HEAD + name("collections", "OrderedDict") + b"](" + pairs + b"e\x85R."


def elements_with_one_hash(size):
    keys = b"".join(number(i * MODULUS) for i in range(1, size // 12))
    return HEAD + name("builtins", "set") + b"](" + keys + b"e\x85R."


def frozen_elements_with_one_hash(size):
    keys = b"".join(number(i * MODULUS) for i in range(1, size // 12))
    return HEAD + name("builtins", "frozenset") + b"](" + keys + b"e\x85R."


def equal_long_keys(size):
    """Two equal strings by turns: each is compared with the one that is there."""
    long = text(b"x" * (size // 4))
    by_turns = get(0) + b"N" + get(1) + b"N"
    return listed(long, put(0), long, put(1), b"}(", by_turns * (size // 12), b"u")


def one_long_tuple_as_key(size):
    long = b"(" + b"K\x01" * (size // 4) + b"t"
    return listed(long, put(0), (b"}" + get(0) + b"Ns") * (size // 10))


def one_long_size_as_key(size):
    long = name("torch", "Size") + b"(" + b"K\x01" * (size // 4) + b"t\x85R"
    return listed(long, put(0), (b"}" + get(0) + b"Ns") * (size // 10))


def attributes_again_and_again(size):
    state = b"}(" + b"".join(text(b"a%06d" % i) + b"N" for i in range(size // 24)) + b"u"
    target = name("collections", "OrderedDict") + b")R"
    return listed(state, put(0), target, (get(0) + b"b") * (size // 6))


def one_tensor_again_and_again(size):
    args = b"(" + name("torch", "float32") + b"K\x00\x85K\x01\x85\x89t"
    maker = name("torch._utils", "_rebuild_meta_tensor_no_storage")
    return listed(maker, put(0), args, put(1), (get(0) + get(1) + b"R") * (size // 5))


def sets_of_one_list(size):
    long = b"](" + b"K\x01" * (size // 4) + b"e\x85"
    maker = name("builtins", "set")
    return listed(maker, put(0), long, put(1), (get(0) + get(1) + b"R") * (size // 10))


def copies_of_one_string(size):
    args = text(b"x" * (size // 2)) + text(b"latin1") + b"\x86"
    maker = name("_codecs", "encode")
    return listed(maker, put(0), args, put(1), (get(0) + get(1) + b"R") * (size // 10))


def shapes_of_many_dimensions(size):
    args = b"(" + name("torch", "float32") + (b"(" + b"K\x01" * 64 + b"t") * 2 + b"\x89t"
    maker = name("torch._utils", "_rebuild_meta_tensor_no_storage")
    return listed(maker, put(0), args, put(1), (get(0) + get(1) + b"R") * (size // 5))


def many_names(size):
    one = name("collections", "OrderedDict")
    return HEAD + b"](" + one * (size // len(one)) + b"e."


def many_dtypes(size):
    one = name("torch", "int8")
    return HEAD + b"](" + one * (size // len(one)) + b"e."


def many_storage_classes(size):
    one = name("torch", "ByteStorage")
    return HEAD + b"](" + one * (size // len(one)) + b"e."


def many_ordered_dicts(size):
    one = name("collections", "OrderedDict") + put(0)
    return listed(one, (get(0) + b")R") * (size // 4))


def many_empty_dicts(size):
    return HEAD + b"](" + b"}" * min(size, 900_000) + b"e."


def many_marks(size):
    return HEAD + b"(" * size + b"."


def deep_lists(size):
    return HEAD + b"]" * min(size, 500_000) + b"a" * (min(size, 500_000) - 1) + b"."


def deep_tuples(size):
    return HEAD + b")" + b"\x85" * size + b"."


def one_list_in_itself(size):
    return HEAD + b"]" + put(0) + b"(" + get(0) * (size // 2) + b"e."


def many_large_numbers(size):
    one = b"\x8a\xff" + b"\x7f" * 255
    return HEAD + b"}(" + (one + b"N") * (size // 258) + b"u."


_HELPERS = ("archive", "get", "put", "number", "text", "name", "tower", "listed")
PICKLES = [
    value for key, value in list(globals().items()) if callable(value) and key not in _HELPERS
]


def many_entries(size):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        file.writestr("archive/data.pkl", HEAD + b"N.")
        for i in range(size // 140):
            file.writestr(f"archive/data/{i}", b"")
    return out.getvalue()


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def many_empty_tensors(size):
    one = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    return safetensors({f"{i:x}": one for i in range(size // 62)})


def one_name_again_and_again(size):
    one = b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    return safetensors(b"{" + b",".join([one] * (size // len(one))) + b"}")


def much_metadata(size):
    return safetensors({"__metadata__": {f"{i:x}": "" for i in range(size // 13)}})


def unknown_values(size):
    one = b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":' + b"[" * 60 + b"]" * 60
    return safetensors(b"{" + one + b',"x":"' + b"\\u00e9" * (size // 6) + b'"}}')


SAFETENSORS = [many_empty_tensors, one_name_again_and_again, much_metadata, unknown_values]


def measure(maker, size):
    """Processor seconds that loading takes, the file's size, and what came of it."""
    import tessera as torch
    from tessera.utils import safetensors as reader

    if maker in SAFETENSORS:
        data, load = maker(size), reader.load
    elif maker is many_entries:
        data, load = maker(size), lambda data: torch.load(io.BytesIO(data), weights_only=True)
    else:
        data = archive(maker(size))
        load = lambda data: torch.load(io.BytesIO(data), weights_only=True)
    began = time.process_time()
    try:
        answer = type(load(data)).__name__
    except (pickle.UnpicklingError, RuntimeError) as error:
        answer = f"{type(error).__name__}: {error}"
    return time.process_time() - began, len(data), answer


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    only = sys.argv[2:]
    for maker in [*PICKLES, many_entries, *SAFETENSORS]:
        if only and maker.__name__ not in only:
            continue
        seconds, length, answer = measure(maker, size)
        print(f"{seconds:.3f} {length} {maker.__name__} {answer}", flush=True)


if __name__ == "__main__":
    main()
