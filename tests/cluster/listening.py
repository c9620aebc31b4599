"""Run by itself: a local cluster as our commands start it. Prints the addresses it listens on as JSON."""

import json

import psutil
import ray

from sfora_ray.cluster.session import connected


@ray.remote(num_cpus=0)
def is_there() -> bool:
    return True


def main() -> None:
    with connected():
        assert ray.get(is_there.remote(), timeout=60)
        own = psutil.Process()
        sockets = [one for process in (own, *own.children(recursive=True)) for one in process.net_connections()]
        print(json.dumps([one.laddr.ip for one in sockets if one.status == psutil.CONN_LISTEN]))  # noqa: T201


if __name__ == "__main__":
    main()
