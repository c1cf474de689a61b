"""How do tests get a Dask cluster? A scheduler and workers on this machine, as processes that end with the test."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

from tests import running

ROOT = Path(__file__).resolve().parents[1]
needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed (the extra 'dask')")


def started(*command: str, **environment: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """A process that finds what is in tests/."""
    found = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return running.started(*command, **{"PYTHONPATH": found, "PYTHONWARNINGS": "ignore", **environment})


@dataclass(frozen=True)
class Cluster:
    """Its address as a user writes it, and its processes."""

    address: str
    scheduler: subprocess.Popen[str]
    workers: list[subprocess.Popen[str]]


@contextmanager
def cluster(
    folder: Path,
    workers: int,
    scheduler: tuple[str, ...] = (),
    worker: tuple[str, ...] = (),
    protocol: str = "tcp",
    *,
    nanny: bool = False,
    **environment: str,
) -> Iterator[Cluster]:
    """A scheduler and so many workers, one thread each, that find what is in tests/; a nanny replaces the dead."""
    file = folder / "scheduler.json"
    place = ("--host", "127.0.0.1", "--port", "0", "--protocol", protocol, "--scheduler-file", str(file))
    with ExitStack() as stack:
        start = ("-m", "distributed.cli.dask_scheduler", *place, "--no-dashboard", *scheduler)
        first = stack.enter_context(started(*start, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1", **environment))
        eventually(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]
        options = (
            "--nanny" if nanny else "--no-nanny",
            "--nthreads",
            "1",
            "--no-dashboard",
            "--local-directory",
            str(folder),
            *worker,
        )
        begin = ("-m", "distributed.cli.dask_worker", address, *options)
        others = [stack.enter_context(started(*begin, **environment)) for _ in range(workers)]
        yield Cluster(address.replace("tcp://", "dask://"), first, others)


def eventually(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


def certificates(folder: Path) -> dict[str, str]:
    """An authority of our own and a certificate that it signed, in the words of Dask's configuration."""
    if which("openssl") is None:
        pytest.skip("openssl is not installed")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for command in (
        ("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority", "-days", "1"),
        ("req", *new, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=member"),
        (
            "x509",
            "-req",
            "-in",
            "request.pem",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-out",
            "cert.pem",
            "-days",
            "1",
        ),
    ):
        subprocess.run(("openssl", *command), cwd=folder, check=True, capture_output=True)
    tls = "distributed.comm.tls"
    said = {f"{tls}.ca-file": "ca.pem"}
    for role in ("scheduler", "worker", "client"):
        said |= {f"{tls}.{role}.cert": "cert.pem", f"{tls}.{role}.key": "key.pem"}
    return {name: str(folder / file) for name, file in said.items()}


def in_environment(configuration: dict[str, str]) -> dict[str, str]:
    """The same as variables of the environment."""
    return {"DASK_" + name.upper().replace(".", "__").replace("-", "_"): said for name, said in configuration.items()}


@contextmanager
def configured(configuration: dict[str, str]) -> Iterator[None]:
    """The same in this process."""
    import dask
    import distributed  # noqa: F401  # first: it brings the rest of the configuration

    with dask.config.set(configuration):
        yield
