"""Systems by name and by path."""

from pathlib import Path

import pytest

from mrcfabric import bundles
from mrcfabric.errors import ConfigError


def test_every_file_is_found_by_its_name() -> None:
    assert "mrc" in bundles.names()
    assert {path.stem for path in bundles.SHIPPED.iterdir()} == set(bundles.names())
    for name in bundles.names():
        assert bundles.file_of(name, "here") == bundles.SHIPPED / f"{name}.yaml"


@pytest.mark.parametrize("text", ["./mine", "a/b.yaml", "mine.yaml", "mine.yml", "/mrc"])
def test_what_looks_like_a_path_is_one(text: str) -> None:
    assert bundles.file_of(text, "here") == Path(text)


@pytest.mark.parametrize(
    ("text", "hint"), [("mcr", "nearest is mrc; there are "), ("ethernet?", "there are "), ("", "there are ")]
)
def test_an_unknown_name_gives_the_nearest_and_all(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bundles.file_of(text, "fabric.yaml:3")
    assert caught.value.where == "fabric.yaml:3"
    assert "no system is called" in caught.value.what
    assert caught.value.hint.startswith(hint)
    assert ", ".join(bundles.names()) in caught.value.hint


def test_a_name_is_never_made_into_a_path_out_of_the_folder() -> None:
    for text in ("..", "\0", "mrc\n", "MRC"):
        with pytest.raises(ConfigError):
            bundles.file_of(text, "here")
