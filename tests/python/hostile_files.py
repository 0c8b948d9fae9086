"""Hostile and broken files, the same at every run: `files()` gives (name, bytes) of what has to be
refused, `odd_files()` of what is unusual and right."""

import io
import pickletools
import random
import struct
import tarfile
import zlib

from file_builders import (
    BUILD,
    FOUR,
    GOOD,
    MARK,
    NEWOBJ,
    ORDERED,
    PERSID,
    PROTO,
    STOP,
    Entry,
    archive,
    call,
    name,
    number,
    put,
    saved,
    storage,
    tensor,
    text,
)

CANARY = "/tmp/tessera-hostile-canary"

# ---- the kinds of attack -------------------------------------------------------------------------

ALLOWED = set(b"\x80.(N\x88\x89JKM\x8aGXU}]\x8f)t\x85\x86\x87aesuhjqrcRb\x81Q")

GADGETS = """
os.system posix.system nt.system os.popen os.execv os.remove os._exit subprocess.Popen
subprocess.run
subprocess.check_output subprocess.getoutput builtins.eval builtins.exec builtins.compile
builtins.__import__ builtins.open builtins.getattr builtins.setattr builtins.map builtins.print
builtins.globals builtins.breakpoint builtins.type builtins.object builtins.list builtins.dict
builtins.int __builtin__.eval __builtin__.exec __builtin__.getattr __builtin__.apply
__builtin__.execfile importlib.import_module importlib._bootstrap._gcd_import runpy._run_code
runpy.run_path pty.spawn timeit.timeit timeit.repeat cProfile.run profile.run pdb.run bdb.Bdb.run
code.interact codeop.compile_command webbrowser.open pickle.loads pickle.load _pickle.loads
marshal.loads shelve.open shutil.rmtree shutil.copyfile socket.socket socket.create_connection
urllib.request.urlopen http.client.HTTPConnection ctypes.CDLL ctypes.util.find_library
multiprocessing.Process asyncio.create_subprocess_shell threading.Thread types.FunctionType
types.CodeType types.MethodType functools.partial functools.reduce operator.attrgetter
operator.methodcaller operator.itemgetter itertools.starmap _codecs.decode codecs.decode
codecs.encode copyreg._reconstructor copyreg.__newobj__ copy_reg._reconstructor
collections.namedtuple collections.defaultdict collections.OrderedDict.fromkeys
collections.deque logging.config.listen tempfile.mktemp tarfile.open zipfile.ZipFile
site.execsitecustomize sys.exit sys.settrace gc.get_objects inspect.getsource linecache.getline
idlelib.run.Executive lib2to3.pgen2.grammar.Grammar.loads numpy.load numpy.f2py.crackfortran.myeval
numpy.testing._private.utils.runstring numpy.core.multiarray._reconstruct numpy.dtype
torch.load torch.hub.load torch.hub.load_state_dict_from_url torch.jit.load torch.save
torch.utils.bottleneck.__main__.run_cprofile torch.utils.data.DataLoader torch.compile
torch.storage._load_from_bytes torch._utils._import_dotted_name torch.nn.Linear
torch.nn.modules.linear.Linear torch.serialization.load torch.serialization._load
torch.serialization.add_safe_globals torch._C._load torch.ops.load_library
torch.utils.cpp_extension.load torch.distributed.rpc.internal._run_function torch.package
torch.testing._internal.common_utils.run_tests torch._dynamo.guards.GuardBuilder.get
torch._inductor.codecache.compile_file torch.fx.Interpreter torch.FloatTensor torch.float32.x
tessera.load tessera._saved.function tessera.serialization.load tessera._utils._rebuild_tensor_v2
__main__.run cloudpickle.loads dill.loads joblib.load pandas.read_pickle pip.main ensurepip._run_pip
distutils.spawn.spawn setuptools.sandbox.run_setup venv.create antigravity.geohash trace.Trace.run
doctest.debug_script turtle.Screen xmlrpc.client.ServerProxy smtplib.SMTP signal.raise_signal
platform.popen pydoc.pager uuid._popen pathlib.Path.unlink io.FileIO io.open_code os.spawnl
""".split()

UNSUPPORTED = """
torch._utils._rebuild_sparse_tensor torch._utils._rebuild_qtensor
torch._utils._rebuild_nested_tensor
torch._utils._rebuild_wrapper_subclass torch.uint16 torch.float8_e4m3fn torch.QInt8Storage
torch.sparse_coo torch._utils._rebuild_device_tensor_from_numpy torch.complex32
""".split()


def opcodes():
    for op in range(256):
        if op not in ALLOWED:
            body = bytes([op]) + b"\x01\x00\x00\x00os\nsystem\n" * 2
            yield f"opcode {op:02x}", saved(PROTO + put(1) + body + STOP)
    for version in (0, 1, 4, 5, 255):
        yield f"protocol {version}", saved(b"\x80" + bytes([version]) + put(1) + STOP)


def gadgets():
    command = f"touch {CANARY}"
    for full in GADGETS:
        module, attribute = full.rsplit(".", 1)
        yield f"reduce {full}", saved(call(module, attribute, command))
        yield f"newobj {full}", saved(name(module, attribute) + put((command,)) + NEWOBJ)
    for full in UNSUPPORTED:
        module, attribute = full.rsplit(".", 1)
        yield f"unsupported {full}", saved(put([name(module, attribute)]))
    for module, attribute in (
        ("os", "system"),
        ("collections", "OrderedDict.__init__.__globals__"),
        ("torch", "_utils._rebuild_tensor_v2"),
        ("torch.nn", "parameter.Parameter"),
        ("", "eval"),
        ("builtins", ""),
        ("os\x00", "system"),
        ("os ", "system"),
        (" os", "system"),
        ("ös", "system"),
        ("a" * 2000, "b"),
        ("torch", "x" * 2000),
    ):
        yield f"global {module[:9]!r}.{attribute[:9]!r}", saved(put([name(module, attribute)]))
    # As a hook, as an attribute, as a storage's class, as a key, behind a good tensor.
    bad = call("os", "system", command)
    yield "in a list", saved(put([tensor(), bad]))
    yield "as a hook", saved(tensor(hooks=bad))
    yield "as a size", saved(tensor(size=bad))
    yield "as a key", saved(b"}" + bad + put(1) + b"s")
    yield "as a state", saved(ORDERED + bad + BUILD)
    yield "in a persistent id", saved(put(("storage", bad, "0", "cpu", 4)) + PERSID)
    yield "legacy", legacy(call("os", "system", command))
    yield "legacy header", LEGACY_MAGIC + PROTO + call("os", "system", command) + STOP


def machine():
    """Broken programs for the pickle machine."""
    for op in b"R\x81bQastue\x85\x86\x87h\x00q\x00r\x00\x00\x00\x00.":
        yield f"alone {op:02x}", saved(PROTO + bytes([op]) + STOP)
    one = put(1)
    yield "no stop", saved(PROTO + one)
    yield "two values", saved(one + one)
    yield "no value", saved(PROTO + STOP)
    yield "open mark", saved(MARK + one)
    yield "behind the stop", saved(PROTO + one + STOP + b"x")
    yield "two pickles", saved(PROTO + one + STOP + PROTO + one + STOP)
    yield "empty pickle", archive([Entry("x/data.pkl", b""), Entry("x/version", b"3\n")])
    yield "get nothing", saved(b"h\x05")
    yield "long get nothing", saved(b"j\xff\xff\xff\xff")
    yield "put far", saved(one + b"r\xff\xff\xff\xff")
    yield "put beyond opcodes", saved(one + b"r\xff\x00\x00\x00")
    yield "reduce an int", saved(one + b")R")
    yield "reduce a string", saved(put("os.system") + b")R")
    yield "reduce a dict", saved(b"})R")
    yield "reduce with a list", saved(name("collections", "OrderedDict") + b"]R")
    yield "reduce a tensor", saved(tensor() + b")R")
    yield "reduce a storage class", saved(call("torch", "FloatStorage", 10**12))
    yield "reduce a dtype", saved(call("torch", "float32"))
    yield "reduce Tensor", saved(call("torch", "Tensor", 10**9))
    yield "reduce Parameter", saved(call("torch.nn.parameter", "Parameter", 1, True))
    yield "newobj int", saved(one + b")\x81")
    yield "newobj Tensor", saved(name("torch", "Tensor") + b")\x81")
    yield (
        "newobj OrderedDict of things",
        saved(name("collections", "OrderedDict") + put(([],)) + NEWOBJ),
    )
    for kind, opcode in (("dict", b"}"), ("list", b"]"), ("tuple", b")"), ("int", one)):
        yield f"build {kind}", saved(opcode + put({"__class__": 1}) + BUILD)
    yield "build with a list", saved(ORDERED + b"]" + BUILD)
    yield "build size", saved(call("torch", "Size", (1,)) + put({}) + BUILD)
    yield "attribute of a tensor", saved(tensor() + put({"__class__": 1}) + BUILD)
    yield "attribute that is an int", saved(tensor() + put({1: 1}) + BUILD)
    for kind, opcode in (
        ("list", b"]"),
        ("tuple", b")"),
        ("tensor", tensor()),
        ("int", one),
        ("size", call("torch", "Size", (1, 2))),
        ("storage", storage()),
        ("set", b"\x8f"),
    ):
        yield f"setitem of a {kind}", saved(opcode + one + one + b"s")
        yield f"setitems of a {kind}", saved(opcode + MARK + one + one + b"u")
    for kind, opcode in (("dict", b"}"), ("tuple", b")"), ("tensor", tensor()), ("set", b"\x8f")):
        yield f"append to a {kind}", saved(opcode + one + b"a")
        yield f"appends to a {kind}", saved(opcode + MARK + one + b"e")
    yield "half a pair", saved(b"}" + MARK + one + b"u")
    yield "list as a key", saved(b"}]" + one + b"s")
    yield "tuple of lists as a key", saved(b"}" + b"]\x85" + one + b"s")
    yield "dict in a set", saved(call("builtins", "set", [{}]))
    yield "long text", saved(PROTO + b"X\xff\xff\xff\xffabc")
    yield "long int", saved(PROTO + b"\x8a\xff\x01")
    yield "text not utf-8", saved(text(b"\xff\xfe"))
    yield "text overlong", saved(text(b"\xc0\x80"))
    yield "text cut", saved(text(b"\xe4\xb8"))
    yield "old string not ascii", saved(b"U\x01\xff")
    yield "name without an end", saved(PROTO + b"cos\nsystem")
    yield "marks", saved(MARK * 20000 + one)
    yield "deep tuples as a key", saved(b"})" + b"\x85" * 200000 + one + b"s")
    yield "deep tuples", saved(b")" + b"\x85" * 5000)
    yield "stack", saved(b"N" * 1100000)
    copies = put(list(range(1000))) + b"q\x00" + MARK
    for what in ("set", "frozenset"):
        again = (name("builtins", what) + b"h\x00\x85R") * 2000
        yield f"bomb of {what}", saved(copies + again + b"t")
    again = (name("_codecs", "encode") + b"h\x00h\x01\x86R") * 1000
    yield (
        "bomb of bytes",
        saved(text("a" * 100000) + b"q\x00" + put("latin1") + b"q\x01" + MARK + again + b"t"),
    )
    again = (name("torch", "Size") + b"h\x00\x85R") * 2000
    yield "bomb of sizes", saved(put(tuple(range(1000))) + b"q\x00" + MARK + again + b"t")
    yield "encode utf-16", saved(call("_codecs", "encode", "a", "utf-16"))
    yield "encode rot13", saved(call("_codecs", "encode", "a", "rot13"))
    yield "encode beyond latin1", saved(call("_codecs", "encode", "中", "latin1"))
    yield "bytearray of a number", saved(call("builtins", "bytearray", 10**12))
    yield "bytes of a number", saved(call("builtins", "bytes", 10**12))
    yield "complex of text", saved(call("builtins", "complex", "1", "2"))
    yield "set of a dict", saved(call("builtins", "set", {}))
    yield "OrderedDict of an int", saved(call("collections", "OrderedDict", 1))
    yield "OrderedDict of triples", saved(call("collections", "OrderedDict", [[1, 2, 3]]))
    yield "Counter of a list", saved(call("collections", "Counter", [1]))
    yield "Size of text", saved(call("torch", "Size", ("a",)))
    yield "device of a number", saved(call("torch", "device", 1))
    yield "device that is none", saved(call("torch", "device", "nonsense"))
    yield "layout that is none", saved(call("torch.serialization", "_get_layout", "torch.load"))


def tensors():
    """Tensors and storages that say what is not so."""
    big = 2**62
    for size, stride, offset in (
        ((5,), (1,), 0),
        ((4,), (1,), 1),
        ((2, 2), (3, 1), 1),
        ((4,), (-1,), 3),
        ((-1,), (1,), 0),
        ((4,), (1,), -1),
        ((big,), (1,), 0),
        ((2,), (big,), 0),
        ((big, big), (0, 0), 0),
        ((2**32, 2**32), (0, 0), 0),
        ((big, big, 0), (0, 0, 0), 0),
        ((0,), (2**60,), 0),
        ((0,), (1,), -1),
        ((4,), (1,), big),
        ((4,), (1, 1), 0),
        ((2, 2), (1,), 0),
        ((1,) * 65, (0,) * 65, 0),
        ((2**63,), (0,), 0),
        ((4,), (2**63,), 0),
        ((1.0,), (1,), 0),
        (("4",), (1,), 0),
        ((True,), (1,), 0),
    ):
        yield (
            f"geometry {size[:3]} {stride[:3]} {offset}",
            saved(tensor(size=size, stride=stride, offset=offset)),
        )
    yield "size a list", saved(tensor(size=[4]))
    yield "size an int", saved(tensor(size=4))
    yield "offset text", saved(tensor(offset="0"))
    yield "grad an int", saved(tensor(grad=1))
    yield "hooks", saved(tensor(hooks={1: 2}))
    yield "metadata", saved(tensor(more=({"conj": True},)))
    yield "too many arguments", saved(tensor(more=(None, None)))
    yield "too few arguments", saved(call("torch._utils", "_rebuild_tensor_v2", storage()))
    yield "over an int", saved(tensor(memory=put(3)))
    yield "over a tensor", saved(tensor(memory=tensor()))
    yield "gradient of ints", saved(tensor(storage(kind="IntStorage"), grad=True))
    yield "parameter of an int", saved(call("torch._utils", "_rebuild_parameter", 1, True, ORDERED))
    yield (
        "parameter with hooks",
        saved(call("torch._utils", "_rebuild_parameter", tensor(), True, {1: 1})),
    )
    yield (
        "parameter of ints",
        saved(
            call(
                "torch._utils",
                "_rebuild_parameter",
                tensor(storage(kind="IntStorage")),
                True,
                ORDERED,
            )
        ),
    )
    yield (
        "parameter state",
        saved(call("torch._utils", "_rebuild_parameter_with_state", tensor(), True, ORDERED, [1])),
    )
    rebuild = name("torch._utils", "_rebuild_tensor_v2")
    args = (storage(), 0, (4,), (1,), False, ORDERED)
    for function, kind, state in (
        (name("collections", "OrderedDict"), name("torch", "Tensor"), {}),
        (name("builtins", "set"), name("torch", "Tensor"), {}),
        (rebuild, name("torch.nn.parameter", "Parameter"), {}),
        (rebuild, name("collections", "OrderedDict"), {}),
        (rebuild, put("torch.Tensor"), {}),
        (rebuild, name("torch", "Tensor"), (1, 2)),
        (rebuild, name("torch", "Tensor"), {"__class__": 1}),
        (put(1), name("torch", "Tensor"), {}),
    ):
        yield (
            f"from type {len(function)} {len(kind)} {state}",
            saved(call("torch._tensor", "_rebuild_from_type_v2", function, kind, args, state)),
        )
    for words in (
        storage(word="tensor"),
        storage(key="1"),
        storage(key="../0"),
        storage(key="0/../0"),
        storage(key=""),
        storage(key="a" * 300),
        storage(location="b" * 300),
        storage(location="/etc/passwd"),
        storage(location="xla:0"),
        storage(location=""),
        storage(numel=5),
        storage(numel=3),
        storage(numel=0),
        storage(numel=-1),
        storage(numel=2**61),
        storage(numel=2**64),
        storage(kind="DoubleStorage"),
        storage(kind="ByteStorage"),
        storage(kind="OrderedDict", module="collections"),
        storage(kind="float32"),
        put((1, 2, 3)) + PERSID,
        put("storage") + PERSID,
        put(("storage", "FloatStorage", "0", "cpu", 4)) + PERSID,
        put(("storage", name("torch", "FloatStorage"), 0, "cpu", 4)) + PERSID,
        put(("storage", name("torch", "FloatStorage"), "0", 0, 4)) + PERSID,
        put(("storage", name("torch", "FloatStorage"), "0", "cpu", "4")) + PERSID,
        put(("storage", name("torch", "FloatStorage"), "0", "cpu", 4, ("v", 0, 4))) + PERSID,
        put(("storage", name("torch", "FloatStorage"), "0", "cpu", 4, None, None)) + PERSID,
    ):
        yield f"storage {words[9:].hex()[:60]}", saved(tensor(memory=words))
    yield "one storage two ways", saved(put([tensor(), tensor(storage(kind="IntStorage"))]))
    yield "one storage two sizes", saved(put([storage(), storage(numel=3)]))
    yield "untyped without a dtype", saved(tensor(storage(kind="UntypedStorage", numel=16)))
    yield (
        "v3 without a dtype",
        saved(
            tensor(
                storage(kind="UntypedStorage", numel=16), function="_rebuild_tensor_v3", more=(1,)
            )
        ),
    )
    yield (
        "v3 beyond",
        saved(
            tensor(
                storage(kind="UntypedStorage", numel=16),
                size=(5,),
                function="_rebuild_tensor_v3",
                more=(name("torch", "float32"),),
            )
        ),
    )
    yield (
        "meta of 2**120",
        saved(
            call(
                "torch._utils",
                "_rebuild_meta_tensor_no_storage",
                name("torch", "float32"),
                (2**60, 2**60),
                (0, 0),
                False,
            )
        ),
    )
    yield "data missing", saved(tensor(), data={})
    yield "data empty", saved(tensor(), data={"0": b""})
    yield "data long", saved(tensor(), data={"0": FOUR + b"\0"})
    yield "byte order", saved(more=[Entry("x/byteorder", b"middle")])
    yield "byte order long", saved(more=[Entry("x/byteorder", b"little" * 1000)])
    yield "no pickle", archive([Entry("x/data/0", FOUR), Entry("x/version", b"3\n")])
    yield "TorchScript", saved(more=[Entry("x/constants.pkl", b"\x80\x02).")])


def zips():
    """Archives that two readers could see in two ways, and broken ones."""
    pkl = PROTO + GOOD + STOP
    good = [Entry("x/data.pkl", pkl), Entry("x/data/0", FOUR), Entry("x/version", b"3\n")]

    def with_entry(*entries, **lies):
        return archive([*good, *entries], **lies)

    def instead(**lies):
        return archive([good[0], Entry("x/data/0", FOUR, **lies), good[2]])

    for bad in (
        "/etc/passwd",
        "x/../../etc/passwd",
        "../x",
        "x/..",
        "x/./a",
        "x//a",
        "y/a",
        "x\\a",
        "x/a\\b",
        "x/a\nb",
        "x/a\x00b",
        "x/\x7f",
        "",
        "/",
        "x/" + "a" * 5000,
        "C:\\x",
    ):
        yield f"name {bad[:20]!r}", with_entry(Entry(bad, b"1"))
    yield "folder with content", with_entry(Entry("x/f/", b"1"))
    yield "name twice", with_entry(Entry("x/data.pkl", PROTO + put(1) + STOP))
    yield "data twice", with_entry(Entry("x/data/0", FOUR))
    yield "wrong crc", instead(crc=1)
    yield "wrong crc of the pickle", archive([Entry("x/data.pkl", pkl, crc=5), *good[1:]])
    yield "local crc", instead(local_crc=7)
    yield "other local name", instead(local_name=b"x/data/1")
    yield (
        "other local name of the pickle",
        archive([Entry("x/data.pkl", pkl, local_name=b"x/dota.pkl"), *good[1:]]),
    )
    yield "other local method", instead(local_method=8)
    yield "other local flags", instead(local_flags=1)
    yield "no local signature", instead(local_signature=0x12345678)
    yield "local size", instead(local_size=15)
    yield "local packed", instead(local_packed=17)
    yield "local extra beyond", instead(local_extra_size=60000)
    yield "local extra broken", instead(local_extra=b"\x01\x00\xff\x00ab")
    yield "encrypted", instead(flags=1)
    yield "strong encryption", instead(flags=0x41)
    packed = zlib.compress(FOUR * 1000)[2:-4]
    yield "deflated", archive([good[0], Entry("x/data/0", packed, method=8, size=16000), good[2]])
    bomb = zlib.compress(b"\0" * 50_000_000)[2:-4]
    yield "bomb", archive([Entry("x/data.pkl", bomb, method=8, size=50_000_000), *good[1:]])
    yield "bomb that says stored", archive([Entry("x/data.pkl", bomb, size=50_000_000), *good[1:]])
    for method in (1, 9, 12, 14, 93, 99):
        yield f"method {method}", instead(method=method)
    yield "two sizes", instead(packed=16, size=20)
    yield "size beyond the end", instead(size=10**6, packed=10**6)
    yield "size of 4 GiB", instead(size=0xFFFFFFFE, packed=0xFFFFFFFE)
    yield "64-bit size without a field", instead(size=0xFFFFFFFF, packed=0xFFFFFFFF)
    field = struct.pack("<HHQQ", 1, 16, 2**63, 2**63)
    yield (
        "64-bit size of 2**63",
        instead(size=0xFFFFFFFF, packed=0xFFFFFFFF, extra=field, local_extra=field),
    )
    field = struct.pack("<HHQQ", 1, 16, 2**64 - 1, 2**64 - 1)
    yield (
        "64-bit size of 2**64-1",
        instead(size=0xFFFFFFFF, packed=0xFFFFFFFF, extra=field, local_extra=field),
    )
    field = struct.pack("<HHQQ", 1, 16, 16, 16)
    yield (
        "64-bit size only in the directory",
        instead(size=0xFFFFFFFF, packed=0xFFFFFFFF, extra=field, local_size=15, local_packed=15),
    )
    yield (
        "two 64-bit fields",
        instead(
            size=0xFFFFFFFF, packed=0xFFFFFFFF, extra=field + field, local_size=16, local_packed=16
        ),
    )
    yield "offset beyond", instead(offset=10**6)
    yield "offset inside another", instead(offset=40)
    yield "offset of another", instead(offset=0)
    yield "64-bit offset", instead(offset=0xFFFFFFFF, extra=struct.pack("<HHQ", 1, 8, 2**64 - 1))
    yield "extra beyond", instead(extra_size=60000)
    yield "name beyond", instead(name_size=60000)
    yield "entry on another disk", instead(disk=1)
    yield "directory signature", instead(signature=0x12345678)
    inner = archive(good)
    yield (
        "entry over another",
        archive([Entry("x/data.pkl", pkl), Entry("x/a", inner), Entry("x/b", b"", offset=60)]),
    )
    yield "comment", archive(good, comment=b"hello")
    yield "comment that hides an archive", archive(good, comment=inner)
    yield "comment size", archive(good, comment_size=5)
    yield "bytes before", archive(good, before=b"#!/bin/sh\n")
    yield "archive before", archive(good, before=inner)
    yield "bytes after", archive(good, after=b"more")
    yield "archive after", inner + archive([Entry("y/data.pkl", PROTO + put(2) + STOP)])
    yield "gap before the directory", archive(good, gap=b"\0" * 100)
    yield "gap between", archive([good[0], Entry("x/data/0", FOUR, behind=b"\0" * 100), good[2]])
    yield "behind the directory", archive(good, behind_directory=b"\0" * 10)
    yield "count 0", archive(good, count=0)
    yield "count too small", archive(good, count=2)
    yield "count too large", archive(good, count=4)
    yield "count huge", archive(good, count=0xFFFF)
    yield "counts differ", archive(good, count_here=2)
    yield "directory beyond", archive(good, directory=10**6)
    yield "directory early", archive(good, directory=10)
    yield "directory size", archive(good, directory_size=10)
    yield "directory huge", archive(good, directory_size=0xFFFFFFFE)
    yield "other disk", archive(good, end_disk=1)
    for lie in (
        {"count": 10**9},
        {"count": 2**64 - 1},
        {"count": 2},
        {"size": 2**63},
        {"size": 10},
        {"offset": 2**64 - 1},
        {"offset": 10},
        {"at": 2**63},
        {"at": 0},
        {"signature": 1},
        {"record": 2**63},
        {"disk": 3},
        {"count_here": 1},
    ):
        yield f"64-bit end {lie}", archive(good, end64=lie)
    yield "two ends differ", archive(good, end64={}, short_count=7)
    yield "no end", archive(good)[:-22]
    yield "only an end", archive([])
    yield "no folder", archive([Entry("data.pkl", pkl), Entry("version", b"3\n")])
    yield "nested archive", archive([Entry("x/data.pkl", inner), Entry("x/version", b"3\n")])


LEGACY_MAGIC = PROTO + number(0x1950A86A20F9469CFC6C) + STOP
MACHINE = PROTO + put({"protocol_version": 1001, "little_endian": True}) + STOP


def legacy(body, keys=("0",), data=None, version=1001):
    data = struct.pack("<q", 4) + FOUR if data is None else data
    return b"".join(
        (
            LEGACY_MAGIC,
            PROTO + put(version) + STOP,
            MACHINE,
            PROTO + body + STOP,
            PROTO + put(list(keys)) + STOP,
            data,
        )
    )


def others():
    """Other kinds of files, and the older form of PyTorch's."""
    yield "text", b"not a checkpoint at all\n" * 20
    yield "zeros", b"\0" * 1000
    yield "png", b"\x89PNG\r\n\x1a\n" + b"\0" * 100
    yield "elf", b"\x7fELF" + b"\0" * 100
    yield "gzip", b"\x1f\x8b\x08" + b"\0" * 100
    yield "html", b"<!DOCTYPE html><html><title>404</title></html>"
    yield "git lfs pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    yield "bare pickle", PROTO + put({"a": 1}) + STOP
    yield "bare gadget", PROTO + call("os", "system", f"touch {CANARY}") + STOP
    yield "PK only", b"PK"
    yield "PK header only", b"PK\x03\x04"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        content = PROTO + call("os", "system", f"touch {CANARY}") + STOP
        info = tarfile.TarInfo("pickle")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    yield "tar", out.getvalue()
    old = tensor(
        memory=put(("storage", name("torch", "FloatStorage"), "0", "cpu", 4, None)) + PERSID
    )
    yield "legacy version", legacy(old, version=1000)
    yield "legacy keys", legacy(old, keys=("1",))
    yield "legacy no keys", legacy(old, keys=())
    yield "legacy key twice", legacy(old, keys=("0", "0"), data=(struct.pack("<q", 4) + FOUR) * 2)
    yield "legacy numel", legacy(old, data=struct.pack("<q", 5) + FOUR)
    yield "legacy numel negative", legacy(old, data=struct.pack("<q", -4) + FOUR)
    yield "legacy cut", legacy(old)[:-1]
    yield "legacy without data", legacy(old, data=b"")
    yield "legacy bytes behind", legacy(old) + b"\0"
    huge = put(("storage", name("torch", "FloatStorage"), "0", "cpu", 2**61, None)) + PERSID
    yield "legacy huge", legacy(tensor(memory=huge), data=struct.pack("<q", 2**61) + FOUR)
    whole = legacy(old)
    for size in range(1, len(whole) - 1, 7):
        yield f"legacy cut at {size}", whole[:size]


def cuts():
    """A good file, cut everywhere it counts."""
    whole = saved()
    for size in sorted(
        {*range(1, 60), *range(60, len(whole), 5), *range(len(whole) - 60, len(whole))}
    ):
        yield f"cut at {size}", whole[:size]


def files():
    for make in (opcodes, gadgets, machine, tensors, zips, others, cuts):
        for label, data in make():
            yield f"{make.__name__}: {label}", data


def flips(count=400, seed=0):
    """A good file with bits turned: refused, or read with the numbers it had."""
    rng = random.Random(seed)
    whole = saved()
    for i in range(count):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 5))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield f"flip {i}", bytes(data)


def mutations(count=400, seed=0):
    """Good pickles with bytes changed and checksums that fit: the machine has to hold by itself."""
    rng = random.Random(seed)
    seeds = [
        PROTO + GOOD + STOP,
        PROTO
        + put({"a": [tensor(), (1, 2.5, "x")], "o": ORDERED, "c": call("torch", "Size", (2, 3))})
        + STOP,
        PROTO + call("torch._utils", "_rebuild_parameter", tensor(), True, ORDERED) + STOP,
    ]
    ops = [o.code.encode("latin1") for o in pickletools.opcodes]
    for i in range(count):
        body = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(2, len(body))
            action = rng.randrange(4)
            if action == 0:
                body[at] = rng.randrange(256)
            elif action == 1:
                body[at:at] = rng.choice(ops)
            elif action == 2:
                del body[at : at + rng.randrange(1, 8)]
            else:
                end = rng.randrange(at, min(len(body), at + 40))
                body[at:at] = body[at:end]
        yield (
            f"mutation {i}",
            saved(bytes(body) if body.startswith(b"\x80") else PROTO + bytes(body)),
        )


def odd_files():
    """Unusual and right: the bytes, and what they mean as far as `w` and `n` go."""
    field = struct.pack("<HHQQ", 1, 16, 16, 16)
    pkl, version = Entry("x/data.pkl", PROTO + GOOD + STOP), Entry("x/version", b"3\n")
    sizes = {"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF}
    yield "plain", saved()
    yield (
        "64-bit sizes",
        archive([pkl, Entry("x/data/0", FOUR, extra=field, local_extra=field, **sizes), version]),
    )
    yield "64-bit end", archive([pkl, Entry("x/data/0", FOUR), version], end64={})
    descriptor = struct.pack("<IIII", 0x08074B50, zlib.crc32(FOUR), 16, 16)
    later = {"flags": 8, "local_crc": 0, "local_size": 0, "local_packed": 0, "behind": descriptor}
    yield "sizes behind the data", archive([pkl, Entry("x/data/0", FOUR, **later), version])
    yield "no checksum", archive([pkl, Entry("x/data/0", FOUR, crc=0), version])
    yield "folders", archive([Entry("x/"), pkl, Entry("x/data/"), Entry("x/data/0", FOUR), version])
    yield "another order", archive([version, Entry("x/data/0", FOUR), pkl])
    yield (
        "more entries",
        saved(more=[Entry("x/.data/serialization_id", b"123"), Entry("x/y", b"1")]),
    )
    yield "no version", archive([pkl, Entry("x/data/0", FOUR)])
    yield "unused storage", saved(data={"0": FOUR, "1": b"abc"})
    old = tensor(
        memory=put(("storage", name("torch", "FloatStorage"), "0", "cpu", 4, None)) + PERSID
    )
    yield "legacy", legacy(put({"w": old, "n": 3}))
    pairs = call("collections", "OrderedDict", [["w", tensor()], ["n", 3]])
    yield "pairs of Python 2", saved(pairs)
    short = b"}(U\x01w" + tensor() + b"U\x01nK\x03u"
    yield "strings of Python 2", saved(short)
    untyped = tensor(
        storage(kind="UntypedStorage", numel=16, module="torch.storage"),
        function="_rebuild_tensor_v3",
        more=(name("torch", "float32"),),
    )
    yield "v3", saved(put({"w": untyped, "n": 3}))
    yield (
        "key twice",
        saved(b"}(" + put("n") + put(1) + put("w") + tensor() + put("n") + put(3) + b"u"),
    )
