"""Do all who can do the work keep the same promises, whoever dies?"""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from glasshouse.engine import dask, wire
from glasshouse.engine.manifest import code_hash
from glasshouse.engine.workers import Crew, work_through
from glasshouse.errors import GlasshouseBug, InputError
from tests import work_items
from tests.clusters import certificates, cluster, configured, eventually, needs_dask, started
from tests.work_items import Job, through


@pytest.fixture(scope="module")
def dask_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if find_spec("distributed") is None:
        pytest.skip("Dask is not installed (the extra 'dask')")
    code_hash.cache_clear()  # someone may have edited the sources since the tests began
    with cluster(tmp_path_factory.mktemp("dask"), 2, nanny=True) as found:
        yield found.address


def gone(pid: int) -> bool:
    """Is a process dead? One that only waits to be buried is."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


class ExecutorContract:
    """What everyone who does the work promises."""

    width = 2

    @pytest.fixture
    def crew(self) -> Crew:
        raise NotImplementedError

    def test_every_result_comes_once(self, crew: Crew, job: Job) -> None:
        found = list(through(work_items.square, job, range(40), crew))
        assert sorted((done.item, done.answer) for done in found) == [(item, item**2) for item in range(40)]

    @pytest.mark.parametrize("count", [0, 1, 3, 4, 5])
    def test_few_items(self, crew: Crew, job: Job, count: int) -> None:
        found = through(work_items.square, job, iter(range(count)), crew)
        assert sorted(done.item for done in found) == list(range(count))

    def test_items_are_taken_a_few_ahead(self, crew: Crew, job: Job) -> None:
        taken: list[int] = []

        def items() -> Iterator[int]:
            for item in range(60):
                taken.append(item)
                yield item

        received = 0
        for _ in through(work_items.square, job, items(), crew):
            assert len(taken) - received <= 2 * self.width + 1
            received += 1
        assert received == 60

    def test_a_worker_keeps_its_job(self, crew: Crew, tmp_path: Path) -> None:
        """The job is larger than a pipe, and larger than what Dask thinks is large."""
        used: dict[int, list[int]] = {}
        job = Job(tmp_path, ballast=bytes(12_000_000))
        for done in through(work_items.square, job, range(30), crew):
            used.setdefault(done.pid, []).append(done.used)
        assert all(len(set(counts)) == len(counts) for counts in used.values())
        assert len(used) <= self.width

    def test_what_the_work_raises_comes_out(self, crew: Crew, job: Job) -> None:
        with pytest.raises(InputError) as caught:
            list(through(work_items.refuse_seven, job, range(30), crew))
        assert str(caught.value) == "seven is refused"

    def test_what_the_items_raise_comes_out(self, crew: Crew, job: Job) -> None:
        def items() -> Iterator[int]:
            yield from range(10)
            raise KeyError("ten")

        with pytest.raises(KeyError, match=r"ten"):
            list(through(work_items.square, job, items(), crew))

    def test_whoever_leaves_can_come_back(self, crew: Crew, job: Job) -> None:
        results = through(work_items.square, job, range(1000), crew)
        next(results)
        results.close()  # type: ignore[attr-defined]  # it is a generator
        assert multiprocessing.active_children() == []
        assert len(list(through(work_items.square, job, range(10), crew))) == 10


class MortalContract(ExecutorContract):
    """What they promise whose workers are elsewhere and can die without us."""

    def test_an_error_that_cannot_travel_is_named(self, crew: Crew, job: Job) -> None:
        with pytest.raises(GlasshouseBug, match="a worker raised Homebound"):
            list(through(work_items.raise_what_cannot_travel, job, range(9), crew))

    def test_a_job_that_cannot_be_unpacked_says_why(self, crew: Crew, job: Job) -> None:
        with pytest.raises((ValueError, GlasshouseBug), match="invalid literal"):  # from a cluster as words of ours
            list(through(work_items.square, work_items.Locked(job.folder), range(9), crew))

    def test_a_killed_worker_costs_nothing(self, crew: Crew, job: Job) -> None:
        found = list(through(work_items.die_once, job, range(40), crew))
        assert (job.folder / "died").exists()
        assert sorted(done.item for done in found) == list(range(40))

    def test_workers_that_always_die_end_the_run(self, crew: Crew, job: Job) -> None:
        with pytest.raises(InputError, match=r"die again and again.*what is finished is kept"):
            list(through(work_items.die, job, range(40), crew))


class TestHere(ExecutorContract):
    width = 1

    @pytest.fixture
    def crew(self) -> Crew:
        return Crew()

    def test_nothing_is_taken_before_it_is_asked_for(self, job: Job) -> None:
        items = iter(range(10))
        results = through(work_items.square, job, items, Crew())
        assert [next(results).item, next(results).item, next(items)] == [0, 1, 2]

    def test_no_worker_is_no_crew(self) -> None:
        with pytest.raises(InputError, match=r"--workers is 0; expected 1 or more"):
            Crew(0)


class TestProcesses(MortalContract):
    @pytest.fixture
    def crew(self) -> Crew:
        return Crew(2)

    def test_few_items_start_no_process(self, crew: Crew, job: Job) -> None:
        pids = {done.pid for done in through(work_items.square, job, range(3), crew)}
        assert pids == {os.getpid()}
        assert os.getpid() not in {done.pid for done in through(work_items.square, job, range(4), crew)}

    def test_a_worker_has_one_thread_and_no_ctrl_c(self, crew: Crew, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", "7")
        monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
        before, mask = dict(os.environ), signal.pthread_sigmask(signal.SIG_BLOCK, set())
        found = list(work_through(work_items.tell_surroundings, job, range(6), crew, {}))
        assert found == [(["1"] * 4, True)] * 6
        assert dict(os.environ) == before and signal.pthread_sigmask(signal.SIG_BLOCK, set()) == mask

    def test_large_items_survive_a_killed_worker(self, crew: Crew, job: Job) -> None:
        items = ((item, bytes(300_000)) for item in range(20))
        found = list(work_through(work_items.die_once_with_parcel, job, items, crew, {}))
        assert sorted(done.item for done in found) == list(range(20))

    def test_another_thread_may_ask(self, crew: Crew, job: Job) -> None:
        found: list[int] = []
        asking = threading.Thread(
            target=lambda: found.extend(done.item for done in through(work_items.square, job, range(9), crew))
        )
        asking.start()
        asking.join()
        assert sorted(found) == list(range(9))

    def test_who_leaves_waits_for_no_unit(self, crew: Crew, job: Job) -> None:
        results = through(work_items.linger, job, range(10), crew)
        pids = {next(results).pid, next(results).pid}
        results.close()  # type: ignore[attr-defined]  # it is a generator
        assert all(gone(pid) for pid in pids) and multiprocessing.active_children() == []

    SCRIPT = """
from pathlib import Path
from glasshouse.engine.workers import Crew
from tests.work_items import Job, linger, through
if __name__ == "__main__":
    try:
        for done in through(linger, Job(Path()), range(10), Crew(2)):
            print(done.pid, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""

    @pytest.fixture
    def script(self, tmp_path: Path) -> Path:
        path = tmp_path / "script.py"
        path.write_text(self.SCRIPT)
        return path

    def test_ctrl_c_is_for_the_parent(self, script: Path) -> None:
        with started(str(script)) as process:
            assert process.stdout is not None and process.stderr is not None
            pids = {int(process.stdout.readline()), int(process.stdout.readline())}
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
            assert process.stdout.readline() == "interrupted\n"
            assert (process.wait(60), process.stderr.read()) == (0, "")
            assert all(gone(pid) for pid in pids)

    def test_no_worker_outlives_its_parent(self, script: Path) -> None:
        with started(str(script)) as process:
            assert process.stdout is not None
            pids = {int(process.stdout.readline()), int(process.stdout.readline())}
            process.kill()
            eventually(lambda: all(gone(pid) for pid in pids))


class TestDask(MortalContract):
    @pytest.fixture
    def crew(self, dask_address: str) -> Crew:
        return Crew(address=dask_address)

    def test_a_warning_says_that_nothing_is_encrypted(
        self, crew: Crew, job: Job, capsys: pytest.CaptureFixture[str]
    ) -> None:
        wire._warn_that_all_can_read.cache_clear()
        for _ in range(2):
            assert len(list(through(work_items.square, job, range(3), crew))) == 3
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert said.err.startswith("warning: data and results travel unencrypted to 127.0.0.1:")

    @pytest.mark.parametrize("threads", [-7, 0, 10**12])
    def test_a_scheduler_that_lies_about_its_workers(
        self, crew: Crew, job: Job, threads: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Fewer than none would end the run before its items do."""
        monkeypatch.setattr("distributed.Client.nthreads", lambda _: {"tcp://nowhere:1": threads})
        assert len(list(through(work_items.square, job, range(5), crew))) == 5

    def test_other_code_on_the_workers_is_refused(self, crew: Crew, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dask, "code_hash", lambda: "other")
        with pytest.raises(InputError, match=r"another glasshouse"):
            list(through(work_items.square, job, range(3), crew))


@pytest.mark.parametrize(
    "address",
    ["", "dask://", "dask://host", "host:8786", "tcp://host:1", "dask://host:0", "dask://h:99999", "tls://h:1/x"],
)
def test_an_address_that_is_none(job: Job, address: str) -> None:
    with pytest.raises(InputError, match=r"expected dask://HOST:PORT or tls://HOST:PORT"):
        next(through(work_items.square, job, range(9), Crew(address=address)))


def test_dask_that_is_not_installed(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'glasshouse\[dask\]'"):
        next(through(work_items.square, job, range(9), Crew(address="dask://127.0.0.1:1")))


@needs_dask
@pytest.mark.parametrize("scheme", ["dask", "tls"])
@pytest.mark.parametrize("listens", [False, True])
def test_a_scheduler_that_does_not_answer(
    job: Job, scheme: str, listens: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(wire, "PATIENCE", 0.2)
    with socket.socket() as busy, configured(certificates(tmp_path)):
        busy.bind(("127.0.0.1", 0))
        if listens:
            busy.listen()
        address = f"{scheme}://127.0.0.1:{busy.getsockname()[1]}"
        with pytest.raises(InputError, match=r"no Dask scheduler answered.*check that one runs there"):
            next(through(work_items.square, job, range(9), Crew(address=address)))


@needs_dask
def test_without_certificates_nobody_is_spoken_to(job: Job) -> None:
    with pytest.raises(InputError, match=r"Dask's configuration names no certificates; tls:// needs .*ca-file"):
        next(through(work_items.square, job, range(9), Crew(address="tls://127.0.0.1:1")))


class Listener(io.StringIO):
    """Ends a process when it hears of missing workers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__()
        self.process = process

    def write(self, text: str) -> int:
        if "has no workers; waiting" in text:
            self.process.kill()
        return super().write(text)


@needs_dask
def test_a_scheduler_without_workers_that_dies(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "_LOOK_AGAIN", 0.1)
    with cluster(tmp_path, 0) as found:
        monkeypatch.setattr(sys, "stderr", Listener(found.scheduler))
        with pytest.raises(InputError, match=r"the scheduler is gone.*what is finished is kept"):
            next(through(work_items.square, job, range(9), Crew(address=found.address)))
        assert sys.stderr.getvalue().count("has no workers; waiting") == 1  # type: ignore[attr-defined]
