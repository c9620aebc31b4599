"""Which tests stay together when several workers share them (``pytest --numprocesses 2 --dist loadfile``)."""

TOGETHER = {
    "tests/cluster/": ("tests/cluster/",),
    "tests/browser/": ("tests/browser/",),
    "a tracked pack": (
        "tests/serving/",
        "tests/workflows/test_compare.py",
        "tests/workflows/test_run_pack.py",
        "tests/workflows/test_sync.py",
    ),
    "local members": ("tests/pack/test_local.py", "tests/pack/test_local_faults.py"),
    "a server": ("tests/tracking/test_doctor.py", "tests/tracking/test_unreachable.py"),
}
"""Files that share what is dear and made once: a Ray cluster, a browser, a pack with its MLflow runs."""

ALONE = ("tests/cluster/test_processes.py", "tests/cluster/test_tuning.py")
"""Files of such a folder that use nothing of it, or are worth a second one."""

LONGEST_FIRST = (
    "tests/cluster/",
    "tests/cluster/test_tuning.py",
    "tests/cli/test_signals.py",
    "tests/cli/test_sweep_on_ray.py",
    "tests/benchmarks/test_chaos.py",
    "tests/cluster/test_processes.py",
    "tests/browser/",
    "local members",
    "tests/workflows/test_object_store.py",
    "a tracked pack",
    "tests/workflows/test_extend.py",
    "tests/tracking/test_absent_server.py",
)
"""Groups that take half a minute or more, in the order in which workers begin them, so that none is begun last."""


def group_of(nodeid: str) -> str:
    """Return the name of a test's group: of what it shares with others, else of its file."""
    file = nodeid.partition("::")[0]
    names = (name for name, places in TOGETHER.items() if file.startswith(places) and file not in ALONE)
    return next(names, file)


def rank_of(nodeid: str) -> int:
    """Return the place of a test's group in the order of groups."""
    group = group_of(nodeid)
    return LONGEST_FIRST.index(group) if group in LONGEST_FIRST else len(LONGEST_FIRST)
