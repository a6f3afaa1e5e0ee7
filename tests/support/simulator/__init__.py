"""A deterministic simulator of the turn: the real store functions under a virtual clock.

One seed is one course of events. Workers, people, the outside world, the rescuer and the deliverer
take steps in an order drawn from it, with crashes, stalls, clock jumps and lost answers between
them; after every step the invariants are checked, and at the end everything has to settle.
"""

from support.simulator.course import simulate
from support.simulator.world import Violation

__all__ = ["Violation", "simulate"]
