"""The digest of the sources."""

from orchestrator.process.code_digest import CODE, code_digest


def test_the_same_sources_give_the_same_digest() -> None:
    assert code_digest() == code_digest(CODE)


def test_every_package_counts() -> None:
    assert len({code_digest(CODE[:count]) for count in range(len(CODE) + 1)}) == len(CODE) + 1
