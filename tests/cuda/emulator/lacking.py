"""A plugin of pytest: tests that fail because CUDA lacks a kernel are skipped, and say which.

`-p lacking`, with this folder in PYTHONPATH. Wrong numbers and other errors still fail.
"""

import pytest

WORDS = "not implemented for CUDA"


def what_is_lacking(error, item):
    """The message among those that led to the error, or None."""
    while error is not None:
        if isinstance(error, NotImplementedError) and WORDS in str(error):
            return str(error)
        error = error.__cause__ or error.__context__
    return what_the_record_lacks(item)


def what_the_record_lacks(item):
    """Tests of records take a refusal as an answer and fail later: the sample is run again."""
    param = item.callspec.params.get("param") if hasattr(item, "callspec") else None
    run = getattr(item.module, "function_of", None)
    if param is None or run is None:
        return None
    op, sample = param
    try:
        given = item.module.Arguments(item.module.torch, sample, "float32", "cuda")
        run(op)(*given.args, **given.kwargs)
    except NotImplementedError as error:
        return str(error) if WORDS in str(error) else None
    except Exception:
        return None
    return None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed or call.excinfo is None:
        return
    lacking = what_is_lacking(call.excinfo.value, item)
    if lacking:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], lacking)
