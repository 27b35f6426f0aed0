"""The client's address behind proxies: what ours saw counts, what a client writes does not."""

import pytest

from app import config
from app.config import networks
from app.errors import ConfigError
from app.web.proxies import client

OURS = networks("127.0.0.1, 10.0.0.0/8, fd00::/8")
CLIENT = "203.0.113.7"


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("127.0.0.1", [CLIENT], CLIENT),
        ("127.0.0.1", [f"1.1.1.1, {CLIENT}"], CLIENT),  # the client wrote the first
        ("127.0.0.1", [f"127.0.0.1, {CLIENT}"], CLIENT),  # and cannot pass for one of ours
        ("127.0.0.1", [f"{CLIENT}, 10.1.2.3"], CLIENT),  # two proxies of ours
        ("127.0.0.1", ["1.1.1.1", CLIENT], CLIENT),  # the proxy added a line of its own
        ("127.0.0.1", [f"{CLIENT}:4711"], CLIENT),
        ("127.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("::ffff:127.0.0.1", [f"::ffff:{CLIENT}"], CLIENT),
        ("127.0.0.1", ["10.0.0.9"], "10.0.0.9"),  # somebody on our own network
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", [""], "127.0.0.1"),
        ("127.0.0.1", [f"{CLIENT}, unknown"], "127.0.0.1"),
        ("127.0.0.1", [f"{CLIENT}, unknown, 10.0.0.9"], "10.0.0.9"),
        (CLIENT, ["1.1.1.1"], CLIENT),  # not one of ours: its word counts for nothing
        (None, ["1.1.1.1"], None),
    ],
)
def test_only_what_our_proxies_saw_counts(peer: str | None, forwarded: list[str], found: str | None) -> None:
    assert client(peer, forwarded, OURS) == found


def test_without_proxies_nobody_is_believed() -> None:
    assert client("127.0.0.1", [CLIENT], ()) == "127.0.0.1"


@pytest.mark.parametrize("listed", ["localhost", "10.0.0.1/8", "10.0.0.0/8;127.0.0.1"])
def test_what_is_no_network_is_told(monkeypatch: pytest.MonkeyPatch, listed: str) -> None:
    monkeypatch.setenv("TRUSTED_PROXIES", listed)
    with pytest.raises(ConfigError, match="TRUSTED_PROXIES: name addresses or networks"):
        config._read()
