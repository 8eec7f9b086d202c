"""`stats`: all runs of a home, by class of task, in words and as a document."""

from tests.cli.conftest import JOBS


def test_runs_are_measured_by_class_and_together(cli, document):
    cli("demo", "closing")
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "43")
    found = document("stats")
    assert sorted(found["classes"]) == ["closing", JOBS]
    assert (found["classes"][JOBS]["runs"], found["all"]["runs"], found["all"]["satisfied"]) == (2, 3, 3)
    closing = found["classes"]["closing"]
    assert (closing["rungs"]["retry"], closing["rungs"]["rewrite"], closing["repairs"]) == (1, 1, 1)
    assert (closing["duplicate_effects"], closing["repair_rate"]) == (0, 1.0)
    assert 0 < closing["repair_depth"] < 0.2
    assert closing["origins"]["agent"] + closing["origins"]["environment"] == 2
    said = cli("stats").stdout
    assert "Recoveries: retry 1 (50%)  rewrite 1 (50%)" in said
    assert "all " in said


def test_what_a_distribution_means_is_said(cli):
    for thread in ("a", "b", "c"):
        cli("demo", "config-report", "--thread", thread)
    assert "config-report: mostly rewrite and replan: plans rest on what nobody verified" in cli("stats").stdout


def test_a_home_without_runs_is_refused(cli):
    assert "no run was started yet" in cli("stats", code=2).stderr
