"""Which addresses may be connected to: public ones, and those the operator allows. Pure."""

from collections.abc import Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

#: Where clouds give a machine its credentials. No setting allows them; one of them is public.
METADATA = frozenset(
    map(
        ip_address,
        """
        169.254.169.254 169.254.170.2 169.254.170.23 100.100.100.200 168.63.129.16 192.0.0.192
        fd00:ec2::254 fd00:ec2::23 fd20:ce::254
        """.split(),
    )
)
#: Only here are public addresses of version 6.
_UNICAST = IPv6Network("2000::/3")
#: Not public either, though some versions of Python do not know.
_SPECIAL = tuple(
    map(ip_network, "192.0.0.0/24 192.88.99.0/24 198.18.0.0/15 3fff::/20 2001:db8::/32".split())
)
#: An address of version 4 in its last 32 bits, for networks that have only version 6.
_NAT64 = IPv6Network("64:ff9b::/96")


def why_refused(address: Address, *, allow: Iterable[Network] = ()) -> str | None:
    """Say why an address may not be connected to; None: it may be."""
    meant = embedded(address)
    if METADATA & {address, *meant}:
        return "where a cloud keeps the credentials of this machine"
    if any(_is_in(one, allow) for one in (address, *meant)):
        return None
    if all(_is_public(one) for one in meant):
        return None
    return "not a public address"


def embedded(address: Address) -> Sequence[Address]:
    """Give the addresses that one stands for: those it is made of, or else itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    return (address,)


def parse(text: str) -> Address:
    # A zone, such as %eth0, says where and not what.
    return ip_address(text.partition("%")[0])


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    if _is_in(address, _SPECIAL):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)
