import threading
import time

import pytest

from sfora_ray.errors import InputError, StorageError
from sfora_ray.storage import ObjectStore
from tests.storage.server import BUCKET, CREDENTIALS, DROPPED, EXPIRED, S3Server


def test_objects_come_back_as_they_were_put(store: ObjectStore) -> None:
    contents = {"a.txt": b"one", "deep/er/b": b"", "big": bytes(range(256)) * 40_000, "with space+%41": b"x"}
    for name, content in contents.items():
        store.put(name, content)

    assert {name: facts.size for name, facts in store.listing().items()} == {
        name: len(content) for name, content in contents.items()
    }
    assert {name: store.get(name) for name in contents} == contents
    assert all(abs(facts.time_ns / 1e9 - time.time()) < 60 for facts in store.listing().values())


def test_what_is_absent_is_none_and_needs_no_deleting(store: ObjectStore) -> None:
    assert store.listing() == {}
    assert store.get("nothing") is None
    store.delete("nothing")
    store.put("something", b"1")
    store.put("something", b"22")
    assert store.get("something") == b"22"
    store.delete("something")
    assert store.listing() == {}


@pytest.mark.parametrize("new", [b"a longer one", b"less"])
def test_an_object_that_is_replaced_while_it_is_read_is_read_whole(
    store: ObjectStore, s3: S3Server, new: bytes
) -> None:
    """The size is asked for first, and then so many bytes: of the new one they would be the beginning, or too many."""
    store.put("name", b"the old")
    key = f"{store.address.removeprefix(f's3://{BUCKET}/')}/name"
    s3.before_get.append(lambda: s3.insert(key, new))
    assert store.get("name") == new
    assert not s3.before_get


def test_an_object_that_is_replaced_all_the_time_is_an_error_at_last(store: ObjectStore, s3: S3Server) -> None:
    key = f"{store.address.removeprefix(f's3://{BUCKET}/')}/name"
    store.put("name", b"0")
    for size in range(2, 20):
        s3.before_get.append(lambda size=size: s3.insert(key, b"x" * size))  # type: ignore[misc]
    with pytest.raises(StorageError, match="was replaced while it was read"):
        store.get("name")


@pytest.mark.parametrize("fault", [(500, ""), (503, "<Error><Code>SlowDown</Code></Error>"), (DROPPED, "")])
@pytest.mark.parametrize("times", [1, 4])
def test_faults_that_pass_are_sat_out(store: ObjectStore, s3: S3Server, fault: tuple[int, str], times: int) -> None:
    store.put("before", b"1")

    s3.faults.extend([fault] * times)
    store.put("name", b"content")
    assert not s3.faults
    s3.faults.extend([fault] * times)
    assert store.get("name") == b"content"
    s3.faults.extend([fault] * times)
    assert set(store.listing()) == {"before", "name"}
    s3.faults.extend([fault] * times)
    store.delete("name")

    assert s3.keys(store.address.removeprefix(f"s3://{BUCKET}/")) == [
        f"{store.address.removeprefix(f's3://{BUCKET}/')}/before"
    ]


def test_credentials_that_rotate_are_read_anew(
    store: ObjectStore, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("name", b"1")
    old = store._system

    s3.faults.append((403, EXPIRED))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDAFTERROTATION")
    store.put("name", b"2")

    assert store.get("name") == b"2"
    assert store._system is not old


@pytest.mark.parametrize("fault", [(500, ""), (403, EXPIRED), (DROPPED, "")])
def test_a_store_that_stays_away_ends_in_one_error(store: ObjectStore, s3: S3Server, fault: tuple[int, str]) -> None:
    s3.always = fault
    started = time.monotonic()

    with pytest.raises(StorageError) as caught:
        store.put("folder/name", b"1")

    assert time.monotonic() - started < 15
    message = str(caught.value)
    assert message.startswith(f"{store.address}/folder/name: the store failed in every try")
    assert ("credentials" if fault[0] == 403 else "run the command again") in message
    assert "\n" not in message


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch, s3: S3Server) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    store = ObjectStore(f"s3://{BUCKET}/a", pauses_seconds=(0.01,))

    with pytest.raises(StorageError, match=f"s3://{BUCKET}/a: the store failed in every try, got .*Could not connect"):
        store.listing()


def test_errors_hold_no_secret(store: ObjectStore, s3: S3Server) -> None:
    secrets = [CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"]]
    s3.always = (403, f"<Error><Code>SignatureDoesNotMatch</Code><Message>{' '.join(secrets)}</Message></Error>")

    with pytest.raises(StorageError) as caught:
        store.listing()

    assert "*** ***" in str(caught.value)
    assert not any(secret in str(caught.value) for secret in secrets)


def test_a_missing_bucket_is_the_inputs_fault_and_not_tried_again(s3: S3Server) -> None:
    with pytest.raises(InputError, match=r"s3://no-such-bucket/a/.*: there is no such bucket"):
        ObjectStore("s3://no-such-bucket/a").check()
    assert len(s3.requests) <= 2


def test_the_check_leaves_nothing_behind(store: ObjectStore) -> None:
    store.check()
    assert store.listing() == {}


@pytest.mark.parametrize("address", ["s4://bucket/a", "s3://key:hunter2@bucket/a", "runs"])
def test_wrong_addresses_are_refused_without_their_secrets(address: str) -> None:
    with pytest.raises(InputError, match=r"^output: ") as caught:
        ObjectStore(address)
    assert "hunter2" not in str(caught.value)


def test_whoever_is_in_a_hurry_does_not_wait(s3: S3Server) -> None:
    s3.always = (503, "")
    store = ObjectStore(f"s3://{BUCKET}/a", pauses_seconds=(60, 60))
    timer = threading.Timer(0.3, store.hurry)
    timer.start()
    started = time.monotonic()

    for _ in range(2):
        with pytest.raises(StorageError):
            store.listing()

    timer.join()
    assert time.monotonic() - started < 10
    s3.always = None
    assert store.listing() == {}
