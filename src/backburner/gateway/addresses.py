"""Check that we may connect to an address: a public one, or one that the operator allows."""

from collections.abc import Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

#: Cloud metadata services, which hand out credentials. No setting allows them; one is public.
METADATA_ADDRESSES = frozenset(
    map(
        ip_address,
        """
        169.254.169.254 169.254.170.2 169.254.170.23 100.100.100.200 168.63.129.16 192.0.0.192
        fd00:ec2::254 fd00:ec2::23 fd20:ce::254
        """.split(),
    )
)
#: Why an address is refused that the operator may allow.
NOT_PUBLIC = "not a public address"
#: All public IPv6 addresses are in here.
_UNICAST = IPv6Network("2000::/3")
#: Not public either, though some versions of Python say so; the last three are assigned to nobody.
_SPECIAL = tuple(
    map(
        ip_network,
        """
        192.0.0.0/24 192.88.99.0/24 198.18.0.0/15 2001:db8::/32 2d00::/8 2e00::/7 3000::/4
        """.split(),
    )
)
#: An IPv4 address in the last 32 bits, for networks that have IPv6 only.
_NAT64 = IPv6Network("64:ff9b::/96")


def why_refused(address: IpAddress, *, allow: Iterable[IpNetwork] = ()) -> str | None:
    """Return why we may not connect to an address, or None if we may."""
    targets = embedded(address)
    if METADATA_ADDRESSES & {address, *targets}:
        return "a cloud metadata address, which hands out the credentials of this machine"
    if any(_is_in(target, allow) for target in (address, *targets)):
        return None
    if all(_is_public(target) for target in targets):
        return None
    return NOT_PUBLIC


def embedded(address: IpAddress) -> Sequence[IpAddress]:
    """Return the addresses embedded in an address, or else itself."""
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


def parse(text: str) -> IpAddress:
    # A zone such as %eth0 names the interface and is no part of the address.
    return ip_address(text.partition("%")[0])


def _is_public(address: IpAddress) -> bool:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    if _is_in(address, _SPECIAL):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _is_in(address: IpAddress, networks: Iterable[IpNetwork]) -> bool:
    return any(address in network for network in networks)
