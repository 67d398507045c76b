"""What an error of the system asks of the operator."""

import errno

from orchestrator.process.remedies import remedy


def test_errors_of_the_system_have_remedies() -> None:
    assert "ulimit" in remedy(errno.EMFILE)
    assert "memory" in remedy(errno.ENOMEM)
    assert remedy(None) == remedy(errno.EPERM) == ""
