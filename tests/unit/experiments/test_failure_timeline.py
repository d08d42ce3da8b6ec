"""Failures of the YAML become single actions in the order of time."""

from experiments.failures import LinkAction, failed_links, timeline
from experiments.model import FailureModel


def failure(**fields):
    return FailureModel.model_validate(fields)


def test_a_failure_for_some_time_is_a_cut_and_a_repair():
    actions = timeline([failure(at="4 s", link="a-b", do="down", **{"for": "3 s"})])
    assert actions == (LinkAction(4.0, "a-b", False, 0), LinkAction(7.0, "a-b", True, 0))


def test_a_failure_without_end_is_only_a_cut():
    assert timeline([failure(at="1 s", link="a-b")]) == (LinkAction(1.0, "a-b", False, 0),)


def test_actions_come_in_the_order_of_time_whatever_the_order_in_the_file():
    actions = timeline([failure(at="5 s", link="c-d"), failure(at="1 s", link="a-b", **{"for": "9 s"})])
    assert [action.at_s for action in actions] == [1.0, 5.0, 10.0]


def test_the_links_that_are_down_follow_the_actions():
    actions = timeline([failure(at="1 s", link="a-b", **{"for": "4 s"}), failure(at="3 s", link="c-d")])
    assert failed_links(actions, 0.5) == frozenset()
    assert failed_links(actions, 1.0) == {"a-b"}
    assert failed_links(actions, 3.5) == {"a-b", "c-d"}
    assert failed_links(actions, 5.0) == {"c-d"}
