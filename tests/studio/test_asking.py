"""Questions of a run that cannot go on, as Studio shows and answers them."""

from tests.studio.driving import Desk


async def test_a_question_is_answered_by_a_resume_and_the_run_goes_on(desk: Desk) -> None:
    stopped = await desk.run("approval")
    (question,) = (await desk.asked()).values()
    assert question["error"] == "the desk is closed: access denied"
    assert question["question"].endswith("cannot be recovered: the desk is closed: access denied. What should happen?")
    assert {"retry", "answer", "skip", "abort"} <= set(question["choices"])
    (shown,) = stopped["__interrupt__"]
    assert shown["value"]["questions"] == {question["id"]: question}
    desk.let("open")
    final = await desk.answer({question["id"]: {"choice": "retry"}})
    assert final["outcome"]["status"] == "satisfied"
    assert final["outcome"]["artifacts"]["approval"]["value"] == "approved"


NO_ANSWERS: dict[str, object] = {
    "choice": "perhaps",
    "choice: Input should be 'approve', 'retry', 'hint'": {"choice": "dance"},
    "cannot be answered 'approve'; it offers: retry": {"choice": "approve"},
    "Extra inputs are not permitted": {"0000": {"choice": "retry"}},
    "there is no limit 'luck'": {"choice": "raise", "limits": {"luck": 1}},
}


async def test_an_answer_that_makes_no_sense_is_asked_again_and_says_why(desk: Desk) -> None:
    await desk.run("approval")
    before = await desk.asked()
    for why, answer in NO_ANSWERS.items():
        (shown,) = (await desk.answer(answer))["__interrupt__"]
        assert shown["value"]["questions"] == before
        assert why in shown["value"]["refused"]
    final = await desk.answer({"choice": "answer", "value": "by phone"})
    assert final["outcome"]["artifacts"]["approval"]["value"] == "by phone"


async def test_several_questions_are_answered_by_id_in_any_order(desk: Desk) -> None:
    await desk.run("approval", "stamp")
    asked = {each["error"].split()[1]: id_ for id_, each in (await desk.asked()).items()}
    assert set(asked) == {"desk", "stamp"}
    unclear = await desk.answer({"choice": "retry"})
    assert unclear["__interrupt__"][0]["value"]["refused"].startswith("answer by id: ")
    left = await desk.answer({asked["stamp"]: {"choice": "answer", "value": "sealed"}})
    assert set(left["__interrupt__"][0]["value"]["questions"]) == {asked["desk"]}
    desk.let("open")
    final = await desk.answer({asked["desk"]: {"choice": "retry"}})
    assert {name: final["outcome"]["artifacts"][name]["value"] for name in ("approval", "stamp")} == {
        "approval": "approved",
        "stamp": "sealed",
    }


async def test_an_answer_to_nothing_is_refused_and_changes_nothing(desk: Desk) -> None:
    await desk.run("total")
    before = (await desk.state())["values"]
    assert "asks nothing" in await desk.refused(command={"resume": {"choice": "retry"}})
    assert (await desk.state())["values"] == before


async def test_another_goal_may_be_the_answer(desk: Desk) -> None:
    await desk.run("approval")
    final = await desk.answer({"choice": "goal", "goal": {"wants": ["total"]}})
    assert (final["outcome"]["status"], final["goal"]["revision"]) == ("satisfied", 2)
