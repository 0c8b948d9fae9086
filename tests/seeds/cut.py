"""Cuts the code blocks out of the documents: cut.py FOLDER_OF_DOCUMENTS.

Writes blocks/NNN_BB_name.ext (document, number of the block in it) as they stand there, and
blocks/places.tsv with where each was: file, first line, last line, the language it is said to be.
Two kinds of documents: Markdown with fences, and the text of a page on which a block is a file's
name and numbered lines.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
# Fences name no files. The others do.
NAMES = {
    "000": "venv nvidia_smi_idle install check crunch nvidia_smi_working times_512 times_2048 "
    "times_4096 out_of_memory",
    "001": "install setup dumb_model nvidia_smi",
    "002": "move_to_gpu train_linear train_cnn",
    "003": "cpu_only explicit_gpu data_left_on_cpu",
}
FENCE = re.compile(r"```(\w*)\s*$")
FILE_NAME = re.compile(r"\s*🐍(\w+)\.py$")
PROMPT = re.compile(r"\s*>>> ")
# Letters of another alphabet where UTF-8 was taken for it.
GARBLED = re.compile(r"[^\x00-\x7f]+")


class Block(NamedTuple):
    document: str  # its file
    number: int
    name: str
    language: str
    first: int  # lines, counted from 1: those of the code itself
    last: int
    text: str

    @property
    def file(self):
        if self.text.startswith("$") or self.language in ("bash", "sh"):
            kind = "sh"
        elif self.language == "python" and not re.match(r"\w+Error: ", self.text):
            kind = "py"
        elif self.language == "" and re.match(r"(source|python|pip3?) ", self.text):
            kind = "sh"
        else:
            kind = "txt"
        return f"{self.document[:3]}_{self.number:02}_{self.name}.{kind}"


def byte_of(letter):
    """What was read as this letter: of the Greek code page, and where that has gaps, the Latin."""
    try:
        return letter.encode("cp1253")
    except UnicodeError:
        return letter.encode("cp1252")


def repaired(line):
    def decode(match):
        try:
            return b"".join(map(byte_of, match[0])).decode()
        except UnicodeError:
            return match[0]

    return GARBLED.sub(decode, line)


def fenced(lines):
    """Language, first line (from 0), line after the last."""
    at = 0
    while at < len(lines):
        if fence := FENCE.match(lines[at]):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].rstrip() == "```")
            yield "", fence[1], at + 1, end, lines[at + 1 : end]
            at = end
        at += 1


def numbered(lines):
    """Blocks of a page: what is between a file's name and line 1 explains lines."""
    end = 0
    for at, line in enumerate(lines):
        if PROMPT.match(line) and at >= end:
            end = next(i for i in range(at, len(lines)) if not lines[i].strip(" \u0392\u00a0"))
            yield "console", "console", at, end, lines[at:end]
        if not (name := FILE_NAME.match(line)):
            continue
        indent = len(line) - len(line.lstrip())
        begin = next(i for i in range(at + 1, len(lines)) if re.match(r"\s*1\D", lines[i]))
        code = []
        for i in range(begin, len(lines)):
            body, number = lines[i][indent:], str(len(code) + 1)
            if not body.startswith(number):
                break
            code.append(body[len(number) :])
        yield name[1], "python", begin, begin + len(code), code


def blocks(path):
    lines = path.read_text().split("\n")
    names = NAMES.get(path.name[:3], "").split()
    found = list(fenced(lines)) or list(numbered(lines))
    for number, (name, language, first, end, code) in enumerate(found, 1):
        text = "\n".join(repaired(line) for line in code) + "\n"
        name = name or names[number - 1]
        yield Block(path.name, number, name, language, first + 1, end, text)


def main():
    folder = Path(sys.argv[1])
    out = HERE / "blocks"
    out.mkdir(exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    rows = ["block\tdocument\tfirst line\tlast line\tlanguage"]
    for path in sorted(folder.glob("[0-9]*.txt")):
        for block in blocks(path):
            (out / block.file).write_text(block.text)
            row = block.file, block.document, block.first, block.last, block.language or "-"
            rows.append("\t".join(map(str, row)))
    (out / "places.tsv").write_text("\n".join(rows) + "\n")
    print(f"{len(rows) - 1} blocks")


if __name__ == "__main__":
    main()
