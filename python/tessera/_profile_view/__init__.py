"""The page of a profile: a timeline and a table in one file that needs no network.

`tessera run --profile script.py` writes it; so does `write_page(prof, "page.html")`.
"""

import html
from pathlib import Path

_FOLDER = Path(__file__).parent / "web"
_SCRIPTS = ("data.js", "table.js", "timeline.js", "main.js")
_MOST_EVENTS = 300_000


def page(profile, name, most_events=_MOST_EVENTS):
    """The page's text; `profile` is one of the core's, after it has stopped."""
    # In a script nothing may look like its end.
    data = profile.page_data(most_events).replace("<", "\\u003c")
    program = "\n".join((_FOLDER / script).read_text(encoding="utf-8") for script in _SCRIPTS)
    parts = {
        "NAME": html.escape(name),
        "STYLE": (_FOLDER / "page.css").read_text(encoding="utf-8"),
        "DATA": data,
        "PROGRAM": '"use strict";\n(() => {\n' + program + "\n})();",
    }
    # In one pass: what one part says is not looked at for another.
    pieces = (_FOLDER / "page.html").read_text(encoding="utf-8").split("%%")
    pieces[1::2] = [parts[word] for word in pieces[1::2]]
    return "".join(pieces)


def write_page(prof, path, name="profile", most_events=_MOST_EVENTS):
    """Writes the page of a `torch.profiler.profile` that has stopped."""
    core = getattr(prof, "_profile", prof)
    Path(path).write_text(page(core, name, most_events), encoding="utf-8")
