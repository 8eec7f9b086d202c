"""`goal --again`: something is done once more because somebody says so, each time they say so."""

from tests.cli.conftest import JOBS, calls


def test_what_is_wanted_anew_is_made_once_more_each_time_it_is_said(cli, folder):
    (folder / "goal.toml").write_text('wants = ["notice"]')
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    assert calls(folder) == ["write_total", "post_notice"]
    for times in (2, 3):
        cli("goal", "42", "--again", "notice")
        assert calls(folder).count("post_notice") == times
    cli("goal", "42", "--want", "total")
    cli("resume", "42")
    assert calls(folder) == ["write_total", *["post_notice"] * 3]


def test_a_goal_file_may_say_it_and_says_it_once(cli, folder):
    (folder / "goal.toml").write_text('wants = ["notice"]')
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    (folder / "goal.toml").write_text('wants = ["notice"]\nagain = ["total"]')
    for _ in range(2):
        cli("run", "goal.toml", "--thread", "42")
    assert calls(folder) == ["write_total", "post_notice", "write_total"]


def test_what_was_never_made_cannot_be_made_again(cli):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    said = cli("goal", "42", "--again", "totl", code=2).stderr
    assert "'totl' has not been made on this thread; what has been: numbers, total" in said
