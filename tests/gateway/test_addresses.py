"""The addresses we may connect to, however they are spelt."""

from ipaddress import ip_address, ip_network

import pytest

from backburner.gateway.addresses import METADATA_ADDRESSES, parse, why_refused

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@pytest.mark.parametrize(
    "text",
    """
    1.1.1.1 93.184.216.34 2606:4700:4700::1111 2c0f:f530::1 64:ff9b::101:101 2002:101:101::
    """.split(),
)
def test_public_addresses_are_allowed(text: str) -> None:
    assert why_refused(ip_address(text)) is None


@pytest.mark.parametrize(
    "text",
    """
    0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.0.1 172.16.0.1
    172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1
    224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
    :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1
    64:ff9b:1::101:101 100::1 2001::1 2001:db8::1 2002:7f00:1:: 2002:a00:1:: 2d00::1 2e00::1 3000::1
    3ffe::1 3fff::1 5f00::1 fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1 2001:0:7f00:1:0:0:fefe:fefe
    """.split(),
)
def test_addresses_that_are_not_public_are_refused(text: str) -> None:
    assert why_refused(ip_address(text)) == "not a public address"


@pytest.mark.parametrize("text", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
def test_the_operator_can_allow_networks(text: str) -> None:
    assert why_refused(ip_address(text), allow=LOOPBACK) is None


def test_an_allowed_network_allows_no_other() -> None:
    assert why_refused(ip_address("10.0.0.1"), allow=LOOPBACK)
    assert why_refused(ip_address("::ffff:10.0.0.1"), allow=LOOPBACK)


@pytest.mark.parametrize(
    "address",
    [*METADATA_ADDRESSES, ip_address("::ffff:169.254.169.254"), ip_address("64:ff9b::a9fe:a9fe")],
)
def test_cloud_metadata_addresses_cannot_be_allowed(address: object) -> None:
    everything = (ip_network("0.0.0.0/0"), ip_network("::/0"))

    why = why_refused(ip_address(str(address)), allow=everything)

    assert why
    assert "credentials" in why


def test_a_zone_does_not_hide_an_address() -> None:
    assert why_refused(parse("fe80::1%eth0"))
