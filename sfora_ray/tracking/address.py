"""The address of a tracker: what is accepted, how it is shown, and where its files go."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SERVERS = ("http", "https")
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_DEFAULT_PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}
_SQLITE = "sqlite:///"


def fault_of(uri: str) -> str:
    """Return what is wrong with an address, or an empty string."""
    scheme = scheme_of(uri)
    if scheme not in (*_SERVERS, *_DATABASES):
        return "must be a server (http://host:5000) or a database (sqlite:///mlflow.db), not a folder"
    if scheme == "sqlite":
        return "" if _names_a_file(uri) else "must name a database file, as sqlite:///mlflow.db does"
    return "" if urlsplit(uri).hostname else f"must name a host, as {scheme}://host does"


def scheme_of(uri: str) -> str:
    """Return ``http``, ``sqlite``, ``postgresql``, ... without the driver after a ``+``."""
    return uri.partition("://")[0].partition("+")[0].lower() if "://" in uri else ""


def is_server(uri: str) -> bool:
    """Return whether an MLflow server stands between this process and the database."""
    return scheme_of(uri) in _SERVERS


def host_and_port(uri: str) -> tuple[str, int]:
    """Return where the database of this address listens."""
    parts = urlsplit(uri)
    return parts.hostname or "localhost", parts.port or _DEFAULT_PORTS[scheme_of(uri)]


def sqlite_file(uri: str) -> Path | None:
    """Return the absolute path of the database file, or None where the address is no SQLite file."""
    if scheme_of(uri) != "sqlite":
        return None
    return Path(uri.partition(":///")[2].partition("?")[0]).resolve()


def absolute(uri: str) -> str:
    """Return the address so that it means the same file from any working directory."""
    file = sqlite_file(uri)
    if file is None:
        return uri
    _, mark, query = uri.partition("?")
    return f"{_SQLITE}{file}{mark}{query}"


def artifact_folder(uri: str, experiment: str) -> str | None:
    """Return where an experiment's files go: beside an SQLite file; elsewhere the server decides (None).

    MLflow's own default is ``mlruns`` below the working directory of whichever process came first.
    """
    file = sqlite_file(uri)
    if file is None:
        return None
    return (file.parent / "mlruns" / re.sub(r"[^A-Za-z0-9._-]+", "-", experiment).strip(".")).as_uri()


def conceal(text: str, uri: str) -> str:
    """Return ``text`` without the password of ``uri`` and without any other that stands in an address."""
    for secret in _secrets(uri):
        text = text.replace(secret, "***")
    text = re.sub(r"(://[^\s:/@]*):[^\s/]*@", r"\1:***@", text)
    return re.sub(r"([?&]\w*(?:password|token|secret)\w*=)[^&\s'\"]*", r"\1***", text, flags=re.IGNORECASE)


def _secrets(uri: str) -> list[str]:
    user_info = uri.partition("://")[2].rpartition("@")[0]
    password = user_info.partition(":")[2]
    return [secret for secret in (password, unquote(password)) if secret]


def _names_a_file(uri: str) -> bool:
    path = uri.partition(":///")[2].partition("?")[0]
    return path not in ("", ":memory:") and not path.endswith("/")
