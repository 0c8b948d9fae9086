"""The page: one file with its data, style and program."""

import html
from pathlib import Path

from .pack import as_json, pack
from .report import report

_FOLDER = Path(__file__).parent / "web"
_SCRIPTS = ("data.js", "view.js", "layout.js", "timeline.js", "segments.js", "panel.js", "main.js")


def page(replay, name, focus="timeline"):
    data = pack(replay, name)
    data["focus"] = focus
    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    program = "\n".join((_FOLDER / script).read_text(encoding="utf-8") for script in _SCRIPTS)
    text = (_FOLDER / "page.html").read_text(encoding="utf-8")
    parts = {
        "NAME": html.escape(name),
        "STYLE": style,
        "REPORT": html.escape(report(replay, name)),
        "DATA": as_json(data),
        "PROGRAM": '"use strict";\n(() => {\n' + program + "\n})();",
    }
    # In one pass: what one part says is not looked at for another.
    pieces = text.split("%%")
    pieces[1::2] = [parts[word] for word in pieces[1::2]]
    return "".join(pieces)


def write_page(replay, name, path, focus="timeline"):
    text = page(replay, name, focus)
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
