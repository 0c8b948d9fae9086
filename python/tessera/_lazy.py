"""Names of a package that load the file they stand in when first used: importing stays fast."""

import sys

from ._missing import module_getattr


def lazy_names(module_name, table):
    """`__getattr__`, `__dir__` and `__all__` of a package whose files (keys) hold names (words)."""
    home = {name: file for file, names in table.items() for name in names.split()}

    def dir_():
        return sorted({*vars(sys.modules[module_name]), *home})

    return module_getattr(module_name, home), dir_, list(home)
