"""The address of an output: a folder, or a place in an object store such as ``s3://bucket/prefix``."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from sfora_ray.errors import did_you_mean

# What may stand after a `?`. Everything else could be a credential, and the run folder keeps its address.
_SETTINGS = {
    "s3": ("region", "scheme", "endpoint_override"),
    "gs": ("scheme", "endpoint_override"),
    "abfs": (),
    "abfss": (),
    "hdfs": (),
    "viewfs": (),
}
_NAMES_BY_USER = ("abfs", "abfss", "hdfs")
"""Schemes in which what stands before an ``@`` names a container or a user, and is no secret by itself."""


def is_address(text: str) -> bool:
    """Return whether ``text`` is meant as an address, right or wrong, and not as the path of a folder."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text) is not None


def fault_of(address: str) -> str:
    """Return what is wrong with an address, without any secret that it holds; an empty string if nothing is."""
    scheme = scheme_of(address)
    if scheme == "file":
        return "must be the path itself where it is a folder, without file://"
    if scheme not in _SETTINGS:
        known = ", ".join(f"{name}://" for name in _SETTINGS)
        return f"is of no known scheme.{did_you_mean(scheme, _SETTINGS)} Known: {known} or a folder"
    if "://" not in address:
        return f"must have two slashes after the colon, as {scheme}://bucket/prefix does"
    return _fault_of_secrets(address) or _fault_of_place(address)


def _fault_of_secrets(address: str) -> str:
    parts = urlsplit(address)
    user, at, _ = parts.netloc.rpartition("@")
    if (at and parts.scheme.lower() not in _NAMES_BY_USER) or ":" in user:
        return "must hold no credentials, for the run folder keeps it: give them as AWS_ACCESS_KEY_ID and the like"
    known = _SETTINGS[parts.scheme.lower()]
    other = sorted({key for key, _ in parse_qsl(parts.query, keep_blank_values=True)} - set(known))
    if other:
        return f"has the setting '{other[0]}', which is not one of: {', '.join(known) or 'none'}"
    return "must have no '#'" if parts.fragment else ""


def _fault_of_place(address: str) -> str:
    parts = urlsplit(address)
    if not parts.netloc:
        return f"must name a bucket, as {parts.scheme}://bucket/prefix does"
    inner = parts.path.strip("/").split("/")
    if any(part in (".", "..") for part in inner) or "" in inner[:-1]:
        return "must have no '.', '..' or empty part"
    return ""


def scheme_of(address: str) -> str:
    """Return ``s3``, ``gs`` and so on."""
    return address.partition(":")[0].lower()


def settings_of(address: str) -> dict[str, str]:
    """Return what stands after the ``?``."""
    return dict(parse_qsl(urlsplit(address).query))


def bucket_and_prefix(address: str) -> str:
    """Return ``bucket/prefix``, without a slash at either end."""
    parts = urlsplit(address)
    return f"{parts.netloc}/{parts.path.strip('/')}".rstrip("/")


def below(address: str, *names: str) -> str:
    """Return the address of something that lies below; the settings of the address stay."""
    place, mark, settings = address.partition("?")
    return "/".join([place.rstrip("/"), *names]) + mark + settings


def without_credentials(text: str) -> str:
    """Return a text with ``***`` for whatever could be a credential in an address that it holds."""
    text = re.sub(r"://[^/\s@]*@", "://***@", text)
    return re.sub(r"([?&]\w*(?:key|token|secret|password)\w*=)[^&\s'\"]*", r"\1***", text, flags=re.IGNORECASE)
