"""Ending connections the hard way."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import BaseTransport

LINGER_NOT_AT_ALL = struct.pack("ii", 1, 0)


def reset(transport: BaseTransport | None) -> None:
    """Send a TCP reset: the peer's next read fails, and what it has not read is lost."""
    if transport is None:
        return
    connection: socket.socket = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT_AT_ALL)
    hang_up(transport)


def hang_up(transport: BaseTransport | None) -> None:
    """Close at once, in the middle of whatever was being said; what was sent still arrives."""
    if transport:
        transport.abort()  # type: ignore[attr-defined]
