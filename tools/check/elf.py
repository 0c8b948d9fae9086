#!/usr/bin/env python3
"""Every library and program that is built searches only its own folder, and is hardened.

Reads the ELF files of build/release, or of the folders, files and wheels that are named. An empty
or relative element of RUNPATH loads code from the current directory; an absolute one from a folder
of the build machine. Only libtessera_mpi names MPI's folder.
"""

import os
import re
import struct
import sys
import zipfile
from pathlib import Path

from common import ROOT, finish

# Libraries and programs that are shipped; tests and examples are compiled without these options.
SHIPPED = re.compile(r"libtessera(_\w+)?\.so|_C\b.*\.so|kernel_pack")
FOREIGN_FOLDER = re.compile(r"libtessera_mpi\.so")
# Large enough that a function with a buffer, and one with a known size, is certainly in them.
FORTIFIED = re.compile(r"libtessera\.so|libtessera_cpu\.so")

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_STACK, PT_RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
DT_STRTAB, DT_STRSZ, DT_RPATH, DT_TEXTREL, DT_BIND_NOW = 5, 10, 15, 22, 24
DT_RUNPATH, DT_FLAGS, DT_FLAGS_1 = 29, 30, 0x6FFFFFFB
EXECUTABLE, WRITABLE = 1, 2
X86_64, AARCH64 = 62, 183


class Elf:
    """The parts of a 64-bit little-endian ELF file that the checks need."""

    def __init__(self, data):
        self.kind, self.machine = struct.unpack_from("<HH", data, 16)
        start, size, count = (
            *struct.unpack_from("<Q", data, 32),
            *struct.unpack_from("<HH", data, 54),
        )
        # Type, flags, offset in the file, address, size in the file.
        self.segments = []
        for at in range(start, start + size * count, size):
            kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
            self.segments.append((kind, flags, offset, address, length))
        self.data = data
        self.dynamic = self._read_dynamic()
        self.strings = b""
        if DT_STRTAB in self.dynamic:
            at = self._offset_of(self.dynamic[DT_STRTAB][0])
            self.strings = data[at : at + self.dynamic[DT_STRSZ][0]]

    def has(self, kind):
        return any(segment[0] == kind for segment in self.segments)

    def string(self, at):
        return self.strings[at : self.strings.index(b"\0", at)].decode(errors="replace")

    def flag(self, tag, bit):
        return any(value & bit for value in self.dynamic.get(tag, ()))

    def code(self):
        for kind, flags, offset, _, length in self.segments:
            if kind == PT_LOAD and flags & EXECUTABLE:
                yield self.data[offset : offset + length]

    def _read_dynamic(self):
        found = {}
        for kind, _, offset, _, length in self.segments:
            if kind == PT_DYNAMIC:
                for tag, value in struct.iter_unpack("<QQ", self.data[offset : offset + length]):
                    if tag == 0:
                        break
                    found.setdefault(tag, []).append(value)
        return found

    def _offset_of(self, address):
        for kind, _, offset, begin, length in self.segments:
            if kind == PT_LOAD and begin <= address < begin + length:
                return address - begin + offset
        raise ValueError("an address outside the file")


def search_path_problems(name, elf):
    """Elements of RPATH and RUNPATH that lead anywhere but to the file's own folder."""
    if DT_RPATH in elf.dynamic:
        yield "has an RPATH, which comes before LD_LIBRARY_PATH; use a RUNPATH"
    for tag in (DT_RPATH, DT_RUNPATH):
        for at in elf.dynamic.get(tag, ()):
            path = elf.string(at)
            for element in path.split(":"):
                if element == "$ORIGIN" or element.startswith("$ORIGIN/"):
                    continue
                if element.startswith("/") and FOREIGN_FOLDER.fullmatch(name):
                    continue
                what = "absolute" if element.startswith("/") else "relative" if element else "empty"
                yield f"the search path {path!r} has elements that are {what}"


def hardening_problems(name, elf):
    if not elf.dynamic:
        yield "is linked statically: the loader cannot place it at random"
    if not elf.has(PT_RELRO):
        yield "has no read-only relocations: link with -z relro"
    now = DT_BIND_NOW in elf.dynamic or elf.flag(DT_FLAGS, 8) or elf.flag(DT_FLAGS_1, 1)
    if not now:
        yield "resolves symbols when they are first called: link with -z now"
    stack = [flags for kind, flags, *_ in elf.segments if kind == PT_STACK]
    if not stack or stack[0] & EXECUTABLE:
        yield "has an executable stack: link with -z noexecstack"
    for kind, flags, *_ in elf.segments:
        if kind == PT_LOAD and flags & EXECUTABLE and flags & WRITABLE:
            yield "has a segment that is both writable and executable"
    if DT_TEXTREL in elf.dynamic or elf.flag(DT_FLAGS, 4):
        yield "has relocations in its code: compile with -fPIC"
    if elf.kind == 2:
        yield "lies at a fixed address: compile with -fPIE and link with -pie"
    if not SHIPPED.fullmatch(name):
        return
    if elf.flag(DT_FLAGS, 16) and elf.kind == 3 and b"\0main\0" not in elf.strings:
        yield "has static thread-local storage: it cannot be opened once the loader's is used up"
    if b"\0__stack_chk_fail\0" not in elf.strings:
        yield "has no stack protector: compile with -fstack-protector-strong"
    if FORTIFIED.fullmatch(name) and not re.search(rb"\0__\w+_chk\0", elf.strings):
        yield "has no fortified functions: compile with -D_FORTIFY_SOURCE=3"
    if elf.machine == X86_64 and not any(b"\xf3\x0f\x1e\xfa" in code for code in elf.code()):
        yield "has no targets for indirect branches: compile with -fcf-protection"


def is_elf(head):
    """A 64-bit little-endian shared object or program; not an object file."""
    return (
        len(head) >= 64
        and head[:6] == b"\x7fELF\x02\x01"
        and struct.unpack_from("<H", head, 16)[0] in (2, 3)
    )


def contents(path):
    """Pairs of a name and the bytes of each ELF file that a path holds."""
    if path.is_dir():
        for folder, names, leaves in os.walk(path):
            # CMake's own trial programs, and the environment's packages.
            names[:] = [n for n in names if n not in ("CMakeFiles", ".venv")]
            for leaf in leaves:
                file = Path(folder, leaf)
                if not file.is_symlink() and file.suffix not in (".o", ".a"):
                    yield from contents(file)
    elif path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if is_elf(data := wheel.read(name)):
                    yield path / name, data
    else:
        with open(path, "rb") as file:
            if is_elf(head := file.read(64)):
                yield path, head + file.read()


def main():
    named = [Path(word) for word in sys.argv[1:]]
    for path in named:
        if not path.exists():
            sys.exit(f"elf: there is no {path}")
    if not named and (built := ROOT / "build" / "release").exists():
        named = [built]
    findings = []
    count = 0
    for path in named:
        for file, data in contents(path):
            count += 1
            shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
            elf = Elf(data)
            problems = (*search_path_problems(file.name, elf), *hardening_problems(file.name, elf))
            findings += [(shown, 0, problem) for problem in dict.fromkeys(problems)]
    if sys.argv[1:]:
        print(f"elf: {count} files")
        if not count:
            sys.exit(1)
    finish("elf", findings)


if __name__ == "__main__":
    main()
