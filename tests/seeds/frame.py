"""Runs a block of Python with the names it takes for granted: frame.py BLOCK. With PyTorch, too.

It begins at seed 0, for the documents draw random numbers without one. An error ends the block and
is printed as its last line.
"""

import re
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from preludes import AFTER, BEFORE, BY_PARAGRAPHS

BLOCKS = Path(__file__).resolve().parent / "blocks"
CRUNCH = "000_05_crunch.py"


def text_of(file):
    return (BLOCKS / file).read_text()


def crunch(size):
    return text_of(CRUNCH).replace("size = 2048", f"size = {size}")


def out_of_memory():
    """8192 x 8192 of float32 on the GPU, which has as much memory as that of the document."""
    begin, _, rest = crunch(8192).replace("float16", "float32").partition("# ON CPU\n")
    total = "torch.cuda.get_device_properties(0).total_memory"
    limit = f"torch.cuda.set_per_process_memory_fraction(min(1.95 * 2**30 / {total}, 1.0))\n"
    return "import torch\n" + limit + begin + rest.partition("# ON GPU\n")[2]


def console(text):
    """What a session types, each shown as a console shows it."""
    for line in text.splitlines():
        if line.startswith(">>> "):
            code = line[4:]
            try:
                yield f"print(repr({compile(code, '<console>', 'eval') and code}))"
            except SyntaxError:
                yield code


def forever():
    """The GPU's part of it, until somebody ends it."""
    begin = crunch(512).partition("# ON CPU\n")[0]
    return begin + "while True:\n    crunch_the_numbers('cuda')\n    torch.cuda.synchronize()\n"


def code_of(file):
    """What a block runs. One that is a program's output runs that program."""
    text = text_of(file)
    if file.endswith(".py"):
        return text
    if size := re.search(r"times_(\d+)", file):
        return crunch(size[1])
    if "out_of_memory" in file:
        return out_of_memory()
    return "\n".join(console(text))


def run(code, names, title):
    try:
        exec(compile(code, title, "exec"), names)
    except Exception as error:
        # Of a message of many lines, the first.
        whose = "after: " if title == "<after>" else ""
        print(f"{whose}{type(error).__name__}: {str(error).partition(chr(10))[0]}")
        return False
    return True


def main():
    file = sys.argv[1]
    name = file.partition(".")[0]
    if "--forever" in sys.argv:
        exec(forever(), {"__name__": "__main__"})
    sys.argv = [file]
    torch.manual_seed(0)
    names = {"__name__": "__main__"}
    before = BEFORE.get(name, "")
    if before.startswith("<"):  # another block
        before = text_of(before.strip("<>") + ".py")
    if not run(before, names, "<before>"):
        return
    pieces = [code_of(file)]
    if name in BY_PARAGRAPHS:  # they begin with a comment at the margin
        pieces = re.split(r"\n\n(?=#)", pieces[0])
    done = [run(piece, names, str(BLOCKS / file)) for piece in pieces]
    if done[-1]:
        run(AFTER.get(name, ""), names, "<after>")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
