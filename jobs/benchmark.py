"""Run the benchmarks as a Ray job.

ray job submit --working-dir . -- python jobs/benchmark.py [NAME]...
"""

from __future__ import annotations

from sfora_ray.cli.bench import command
from sfora_ray.cli.main import ending

if __name__ == "__main__":
    with ending():
        command(standalone_mode=False)
