"""Runs every block on a device, keeps what came of it, and writes the table of docs/programs.md.

python table.py cpu virtual     runs them here with the Tessera that this interpreter imports
python table.py --write         only writes the table, from results.json
python table.py --merge FILE    takes the columns of another machine's results
"""

import argparse
import json
import sys
import time
from pathlib import Path

from blocks import HERE, all_blocks, verdict

ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
BEGIN, END = "<!-- seeds table: begin -->", "<!-- seeds table: end -->"
COLUMNS = ("cpu", "virtual", "cuda")
HEADS = {"cpu": "CPU", "virtual": "virtual GPU", "cuda": "H200"}


def load(path=RESULTS):
    return json.loads(path.read_text()) if path.exists() else {}


def measure(kind, packages):
    """What the table says of each block on a device; and of the device."""
    import tessera

    gpu = "Virtual GPU" if kind == "virtual" else ""
    if kind == "cuda":
        gpu = tessera.cuda.get_device_name()
    said, wrong = {}, []
    for block in all_blocks():
        began = time.perf_counter()
        said[block.name], why = verdict(block, kind, packages, gpu)
        if why:
            wrong.append(why)
        print(f"{kind:8}{block.name:32}{said[block.name]:24}{time.perf_counter() - began:6.1f} s")
    return {"device": gpu or "none", "version": tessera.__version__, "blocks": said}, wrong


def rows(results):
    heads = [HEADS[kind] for kind in COLUMNS]
    yield "| document | lines | block | " + " | ".join(heads) + " |"
    yield "|---" * (3 + len(heads)) + "|"
    for block in all_blocks():
        cells = [results.get(kind, {}).get("blocks", {}).get(block.name, "") for kind in COLUMNS]
        place = f"{block.document[:3]} | {block.first}-{block.last}"
        link = f"[{block.name[4:]}](../tests/seeds/blocks/{block.file})"
        yield f"| {place} | {link} | " + " | ".join(cells) + " |"
    totals = []
    for kind in COLUMNS:
        said = results.get(kind, {}).get("blocks", {}).values()
        good = sum(word != "fails" for word in said)
        totals.append(f"**{good} of {len(said)}**" if said else "")
    yield "| | | as it should be | " + " | ".join(totals) + " |"


def write(results):
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    path = ROOT / "docs" / "programs.md"
    before, _, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text("\n".join([before + BEGIN, *rows(results), END + after]))


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", choices=[*COLUMNS, []])
    parser.add_argument("--merge", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path, help="only keep the results, in this file")
    options = parser.parse_args(args)
    results, wrong = load(), []
    if options.merge:
        results.update(load(options.merge))
    for kind in options.kinds:
        import tessera

        packages = Path(tessera.__file__).parents[1]  # its files may be links
        results[kind], more = measure(kind, packages)
        wrong += more
    if options.out:
        options.out.write_text(json.dumps({k: results[k] for k in options.kinds}, indent=1) + "\n")
    else:
        write(results)
    for why in wrong:
        print(why, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
