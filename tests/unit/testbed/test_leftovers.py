"""What a killed run leaves is found and removed; what a living one uses, and what is not ours, stays."""

import tempfile

import pytest

from testbed.leftovers import remove_leftovers, scratch_folder


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_scratch_folder_goes_with_its_block_even_on_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), scratch_folder() as path:
        assert path.parent == tmp_path
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_dead_owners_folder_is_removed_and_a_living_ones_kept(tmp_path):
    dead = tmp_path / "mrc-testbed-dead"
    dead.mkdir()
    (dead / ".lock").touch()
    with scratch_folder() as alive:
        assert remove_leftovers() == [dead]
        assert alive.is_dir()


def test_what_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "mrc-testbed-of-somebody").mkdir()  # no lock: not made by us
    (tmp_path / "other").mkdir()
    assert remove_leftovers() == []
    assert len(list(tmp_path.iterdir())) == 2
