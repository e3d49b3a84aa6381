"""What jobs write is kept with each."""

import pytest

from mainspring.workers.capture import captured
from mainspring.workers.executors import JobExecutor
from tests.workers.executing import MODELS, an_executor, attempt_of, run


def test_what_a_killed_process_wrote_before_is_kept(executor: JobExecutor) -> None:
    [dead] = run(executor, attempt_of("p_kill_self"))
    output = captured(dead.context)
    assert output is not None
    assert output.text() == "about to die\n"


@pytest.mark.parametrize("model", MODELS)
def test_the_output_of_concurrent_jobs_is_kept_apart(model: str) -> None:
    jobs = [attempt_of(f"{model}_print", word=word, times=20, job_id=word) for word in ("red", "green", "blue")]
    with an_executor() as executor:  # not the fixture: pytest changes the streams between a fixture and its test
        run(executor, *jobs)
    for attempt in jobs:
        output = captured(attempt.context)
        assert output is not None
        text, word = output.text(), attempt.job_id
        assert text.count(f"{word}\n") >= 20
        assert f"{word} to stderr\n" in text
        assert f"logged {word}" in text
        assert not any(other in text for other in {"red", "green", "blue"} - {word})


@pytest.mark.parametrize("model", MODELS)
def test_the_middle_of_a_huge_output_is_cut(model: str) -> None:
    with an_executor() as executor:
        [attempt] = run(executor, attempt_of(f"{model}_print", word="0123456789", times=20_000))
    output = captured(attempt.context)
    assert output is not None
    text = output.text()
    assert len(text.encode()) <= 64 * 1024
    assert output.dropped_bytes > 100_000
    assert text.startswith("0123456789\n")
    assert "logged 0123456789" in text[-200:]


def test_output_outside_of_jobs_goes_where_it_always_went(capsys: pytest.CaptureFixture[str]) -> None:
    with an_executor() as executor:
        run(executor, attempt_of("t_print", word="inside"))
        print("outside")
    assert capsys.readouterr().out == "outside\n"
