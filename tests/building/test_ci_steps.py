""".ci/steps.sh runs steps and prints a table of their times."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from step_tables import rows_of, table_of

ROOT = Path(__file__).resolve().parents[2]
STEPS = ROOT / ".ci" / "steps.sh"


def run(script, **options):
    return subprocess.run(
        ["bash", "-c", f"source '{STEPS}'\n{script}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        **options,
    )


def test_a_table_of_all_steps_and_the_sum():
    done = run("step quick true\nstep slow sleep 0.5\nstep words echo some words")
    assert done.returncode == 0
    assert "== words\nsome words\n== words: 0." in done.stdout
    table = table_of(done.stdout)
    assert list(table) == ["quick", "slow", "words", "all"]
    assert all(remark is None for _, remark in table.values())
    assert 0.4 <= float(table["slow"][0]) <= float(table["all"][0])
    assert float(table["quick"][0]) < float(table["slow"][0])


def test_the_time_of_the_processors():
    work = "bash -c 'for ((i = 0; i < 300000; ++i)); do :; done'"
    done = run(f"start later {work}\nstep works {work}\nstep sleeps sleep 0.5\nfinish later")
    assert done.returncode == 0, done.stdout
    used = {name: float(cpu) for name, (_, cpu, _) in rows_of(done.stdout).items()}
    assert used["works"] > 0 and used["later"] > 0 and used["sleeps"] < used["works"]
    parts = used["works"] + used["later"] + used["sleeps"]
    assert abs(used["all"] - parts) < 0.05


def test_a_step_that_fails_ends_the_script():
    done = run("step good true\nstep bad bash -c 'exit 7'\nstep never true")
    assert done.returncode == 7
    table = table_of(done.stdout)
    assert table["bad"][1] == "failed (7)" and "never" not in table


def test_a_step_may_be_a_function_and_ends_at_the_first_command_that_fails():
    done = run("both() { echo one; false; echo two; }\nstep both both")
    assert done.returncode == 1
    assert "one\n" in done.stdout and "two\n" not in done.stdout


def test_steps_in_the_background():
    script = """
    start later bash -c 'echo kept; sleep 1'
    step first sleep 1
    finish later
    """
    done = run(script)
    assert done.returncode == 0, done.stdout
    order = [done.stdout.index(text) for text in ("later: started", "== first: ", "kept\n")]
    assert order == sorted(order)
    assert float(table_of(done.stdout)["later"][0]) >= 1


def test_one_in_the_background_that_fails_ends_the_script():
    done = run("start later bash -c 'echo kept; exit 3'\nfinish later\nstep never true")
    assert done.returncode == 3
    assert "kept\n" in done.stdout
    assert table_of(done.stdout)["later"][1] == "failed (3)"


def test_what_still_runs_is_stopped():
    done = run("start later sleep 50\nstep bad false")
    assert done.returncode == 1
    assert table_of(done.stdout)["later"] == ("-", "not finished")


def test_a_script_that_is_stopped_prints_the_table(tmp_path):
    script = f"source '{STEPS}'\nstep one true\nstart two sleep 51.5\nstep three sleep 50\n"
    with open(tmp_path / "out", "w") as out:
        process = subprocess.Popen(
            ["bash", "-c", script], stdout=out, stderr=out, start_new_session=True
        )
        while "== three" not in (tmp_path / "out").read_text():
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(timeout=30) == 143
    table = table_of((tmp_path / "out").read_text().replace("Terminated\n", ""))
    assert list(table) == ["one", "two", "three", "all"]
    assert table["two"] == ("-", "not finished")
    assert table["three"][1] in ("not finished", "failed (143)")  # bash may see its end first


def test_names_that_are_used_twice_are_refused():
    done = run("step one true\nstep one true")
    assert done.returncode == 2 and '"one": expected a name' in done.stdout
