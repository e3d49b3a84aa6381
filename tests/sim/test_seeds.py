"""Three hundred seeds, each of them two thousand seconds of faults and the way back to rest.

The real engine, core, rules and worker's book on a simulated Kafka; what must hold is in oracle.py, model.py and
verdict.py.
"""

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.sim.chunks import CHUNKS, SEEDS_PER_CHUNK, Chunks
from tests.sim.rare import RARE, missing
from tests.sim.run import run_seed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory) -> Chunks:
    return Chunks.of(tmp_path_factory)


@pytest.mark.parametrize(
    "number", range(CHUNKS), ids=lambda number: f"{number * SEEDS_PER_CHUNK + 1}-{(number + 1) * SEEDS_PER_CHUNK}"
)
def test_everything_that_is_promised_holds_through_the_faults_of_a_seed_and_after_them(
    chunks: Chunks, number: int
) -> None:
    failed, _ = chunks.run(number)

    assert not failed, "\n\n".join(failed)


def test_every_rare_path_is_taken_by_some_seed(chunks: Chunks) -> None:
    # given the chunks that this session has run already; when something is still missing, the others
    done = chunks.done()
    seen: Counter[str] = Counter()
    for number in (*done, *(number for number in range(CHUNKS) if number not in done)):
        seen += chunks.run(number)[1]
        if not missing(seen):
            break

    # then
    assert missing(seen) == [], "the run is void: it says nothing about these paths"


def test_a_run_without_faults_misses_rare_paths_and_says_which() -> None:
    assert missing({}) == list(RARE)
    assert missing(dict.fromkeys(RARE, 1) | {RARE[0]: 0}) == [RARE[0]]


_DIGEST = "from tests.sim.run import run_seed; outcome = run_seed(7, 400); print(outcome.digest, outcome.broken)"


def test_a_seed_goes_the_same_way_each_time_in_whatever_process() -> None:
    # given
    first, second = run_seed(7, 400), run_seed(7, 400)

    # when processes order their sets in other ways
    others = [
        subprocess.run(
            [sys.executable, "-c", _DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for hash_seed in ("1", "2")
    ]

    # then
    assert first.events > 20
    assert first.faults > 20
    assert second.digest == first.digest
    assert others == [[first.digest], [first.digest]]


def test_another_seed_goes_another_way() -> None:
    assert run_seed(8, 100).digest != run_seed(7, 100).digest
