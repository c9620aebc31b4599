import pytest

from sfora_ray.storage import below, fault_of, is_address, storage_environment, without_credentials
from sfora_ray.storage.address import bucket_and_prefix


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket",
        "s3://bucket/a/b",
        "s3://bucket/a/b/",
        "s3://bucket/a?region=eu-west-1&endpoint_override=localhost:9000&scheme=http",
        "gs://bucket/a",
        "abfs://container@account.dfs.core.windows.net/a",
        "hdfs://user@host:8020/a",
    ],
)
def test_good_addresses(address: str) -> None:
    assert is_address(address)
    assert fault_of(address) == ""


@pytest.mark.parametrize("folder", ["runs", "/data/runs", "~/runs", "../s3", "a:b", "C:/runs", "s3", "", "a/s3://b"])
def test_folders_are_no_addresses(folder: str) -> None:
    assert not is_address(folder)


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("s3a://bucket/a", "no known scheme. Did you mean 's3'?"),
        ("ftp://host/a", "no known scheme"),
        ("file:///tmp/a", "without file://"),
        ("s3:/bucket/a", "two slashes"),
        ("s3://", "bucket"),
        ("s3:///a", "bucket"),
        ("s3://key:hunter2@bucket/a", "no credentials"),
        ("s3://hunter2@bucket/a", "no credentials"),
        ("hdfs://user:hunter2@host/a", "no credentials"),
        ("s3://bucket/a?secret_key=hunter2", "'secret_key'"),
        ("s3://bucket/a?access_key=", "'access_key'"),
        ("s3://bucket/a#b", "'#'"),
        ("s3://bucket/../b", "'..'"),
        ("s3://bucket/a//b", "empty part"),
    ],
)
def test_faults_are_named_and_tell_no_secret(address: str, fault: str) -> None:
    assert is_address(address)
    assert fault in fault_of(address)
    assert "hunter2" not in fault_of(address)


def test_what_lies_below_keeps_the_settings() -> None:
    address = "s3://bucket/packs/?region=eu-west-1"

    inner = below(address, "herd-0123456789", "members")

    assert inner == "s3://bucket/packs/herd-0123456789/members?region=eu-west-1"
    assert bucket_and_prefix(inner) == "bucket/packs/herd-0123456789/members"
    assert bucket_and_prefix("s3://bucket/") == "bucket"


def test_credentials_in_addresses_are_not_repeated() -> None:
    text = "got 's3://AKID:hunter2@bucket/a?secret_key=hunter2&region=eu' and s3://hunter2@b/c?access_key=hunter2"
    assert (
        without_credentials(text) == "got 's3://***@bucket/a?secret_key=***&region=eu' and s3://***@b/c?access_key=***"
    )
    assert without_credentials("s3://bucket/a?region=eu") == "s3://bucket/a?region=eu"


def test_only_what_a_store_needs_travels_and_only_to_a_store() -> None:
    allowed = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": "c"}
    environment = {**allowed, "AWS_PROFILE": "d", "MLFLOW_TRACKING_PASSWORD": "e", "HOME": "f"}
    assert storage_environment("s3://bucket/a", environment) == allowed
    assert storage_environment("/data/runs", environment) == {}
