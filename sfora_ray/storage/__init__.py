"""Run folders in an object store: addresses, objects, copies and the lease. The only room that knows pyarrow.

A pack always works on a local folder, the working copy; this room carries files between it and the store.
"""

from sfora_ray.storage.address import below, bucket_and_prefix, fault_of, is_address, without_credentials
from sfora_ray.storage.copy import LEDGER_NAME, WorkingCopy
from sfora_ray.storage.environment import storage_environment
from sfora_ray.storage.lease import held_lease, is_leased, lease_holder
from sfora_ray.storage.objects import ObjectFacts, ObjectStore

__all__ = [
    "LEDGER_NAME",
    "ObjectFacts",
    "ObjectStore",
    "WorkingCopy",
    "below",
    "bucket_and_prefix",
    "fault_of",
    "held_lease",
    "is_address",
    "is_leased",
    "lease_holder",
    "storage_environment",
    "without_credentials",
]
