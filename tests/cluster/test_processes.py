import ipaddress
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ray

ROOT = Path(__file__).parents[2]


def told_by(script: str, home: Path, *arguments: str, **settings: str) -> Any:
    """Run a script in a process of its own, without what the tests have set for theirs; return what it says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment = {**kept, "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "HOME": str(home), **settings}
    command = [sys.executable, "-m", f"tests.cluster.{script}", *arguments]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    return json.loads(ran.stdout.splitlines()[-1])


def test_all_that_we_start_listens_on_loopback_alone(tmp_path: Path) -> None:
    addresses = [ipaddress.ip_address(address) for address in told_by("listening", tmp_path)]
    assert len(addresses) > 5
    inner = [getattr(address, "ipv4_mapped", None) or address for address in addresses]
    assert [str(address) for address in inner if not address.is_loopback] == []


@pytest.mark.long
def test_a_member_goes_on_elsewhere_when_its_node_is_lost(tmp_path: Path) -> None:
    told = told_by("two_nodes", tmp_path, str(tmp_path), RAY_AUTH_MODE="disabled", RAY_ENABLE_UV_RUN_RUNTIME_ENV="0")
    assert told["status"] == "finished"
    assert told["same"] == ["model.safetensors", "embeddings.train.npz", "embeddings.test.npz"]
    first, second = told["nodes"]
    assert first != second
    assert told["causes"] == ["node_lost"]
    assert told["gone"]
    assert told["actors"] == []
    assert told["gpus"][0] == ""
    assert told["gpus"][1] != ""
