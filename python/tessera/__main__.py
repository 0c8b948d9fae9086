"""The command `tessera`: runs programs written for PyTorch, lists what they need that is missing,
says what it found here, and shows where device memory and time went.

tessera run [--virtual-gpu SPEC] [--report] [--profile [PAGE.html]] script.py args...
tessera run [--virtual-gpu SPEC] [--report] -m module args...
tessera run [--virtual-gpu SPEC] [--report] -c code args...
tessera run --nproc N [--virtual-gpu SPEC] [--report] script.py args...
tessera check script.py ...
tessera check model.pt ...
tessera doctor [--quick]
tessera top [--once] [--interval SECONDS]
tessera bench transfer|amp|cpu-vs-gpu [--quick] [-o plot.svg]
tessera memory snapshot.pickle [-o page.html] [--device N] [--open]
"""

import io
import os
import sys


def _usage(error=None):
    if error:
        print(f"tessera: {error}", file=sys.stderr)
    print(__doc__, file=sys.stderr)
    return 2 if error else 0


def _run_code(code, path=None):
    """Runs code as the module __main__, which then stays for threads and exit handlers."""
    import types

    main = types.ModuleType("__main__")
    main.__dict__.update(__spec__=None, __builtins__=__builtins__)
    if path is not None:
        main.__file__ = path
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _run_script(path):
    if os.path.isdir(path):
        import runpy

        runpy.run_path(path, run_name="__main__")
        return
    with io.open_code(os.path.abspath(path)) as file:
        code = compile(file.read(), path, "exec")
    _run_code(code, path)


# Options that ask for several processes.
_SEVERAL = ("--nproc", "--nproc-per-node", "--nnodes", "--standalone")


def _take_place():
    """Under mpirun or srun: torchrun's variables, which programs read, from theirs; under our own
    launcher: what ends this process is noted."""
    launched = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_STEP_ID")
    if "RANK" not in os.environ and any(name in os.environ for name in launched):
        from tessera import _C

        for name, value in _C._dist_environment().items():
            os.environ.setdefault(name, value)
    if "TESSERA_RUN_NOTES" in os.environ:
        from tessera.distributed.run import note_errors

        note_errors()


def run(args):
    """`tessera run`: makes `import torch` mean Tessera, and runs the program."""
    wants_report = False
    page = None
    while args and args[0].startswith("--"):
        if args[0].partition("=")[0].replace("_", "-") in _SEVERAL:
            from tessera.distributed.run import main as run_several

            if page:
                return _usage("--profile is for one process")
            return run_several(["--report"] * wants_report + args)
        option, _, value = args.pop(0).partition("=")
        if option == "--report":
            wants_report = True
            continue
        if option == "--profile":
            from tessera._profile_view import command as profiling

            page = value or (args.pop(0) if profiling.takes_file(args) else "profile.html")
            continue
        if option != "--virtual-gpu":
            return _usage(f"unknown option {option}")
        if not value:
            if not args:
                return _usage("--virtual-gpu needs a value such as 2x2GiB")
            value = args.pop(0)
        os.environ["TESSERA_VIRTUAL_GPU"] = value
    if not args:
        return _usage("no program was named")

    if wants_report:
        from tessera import _report

        _report.begin()
    if page:
        profiling.begin(page, args[0])
    from tessera import _alias

    _take_place()
    _alias.install()
    _alias.install_for_children()
    if args[0] in ("-m", "-c"):
        flag, *rest = args
        if not rest:
            return _usage(f"{flag} needs an argument")
        what, *program_args = rest
        sys.path[0] = os.getcwd() if flag == "-m" else ""
        sys.argv = [flag, *program_args]
        if flag == "-c":
            _run_code(compile(what, "<string>", "exec"))
        else:
            import runpy

            sys.argv[0] = what
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        return 0
    script = args[0]
    if not os.path.exists(script):
        return _usage(f"there is no {script}")
    sys.argv = list(args)
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    _run_script(script)
    return 0


# Each has a function main, of the arguments.
_COMMANDS = {
    "bench": "tessera._bench",
    "check": "tessera.check",
    "doctor": "tessera.doctor",
    "memory": "tessera.cuda._memory_view",
    "top": "tessera._top",
}


def main():
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help"):
        return _usage()
    if args[0] in _COMMANDS:
        import importlib

        return importlib.import_module(_COMMANDS[args[0]]).main(args[1:])
    if args[0] != "run":
        return _usage(f"unknown command {args[0]}")
    return run(args[1:])


if __name__ == "__main__":
    sys.exit(main())
