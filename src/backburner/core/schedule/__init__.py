"""Schedules: when background work is due, and which slots were missed.

A slot is a time at which a schedule is due. All times are aware and in UTC; local time is used
only to compute cron slots.
"""

from backburner.core.schedule.due_slots import MAX_COUNTED_SLOTS as MAX_COUNTED_SLOTS
from backburner.core.schedule.due_slots import MAX_SLOT_DELAY as MAX_SLOT_DELAY
from backburner.core.schedule.due_slots import TICK as TICK
from backburner.core.schedule.due_slots import Due as Due
from backburner.core.schedule.due_slots import Gap as Gap
from backburner.core.schedule.due_slots import due as due
from backburner.core.schedule.due_slots import first_run_at as first_run_at
from backburner.core.schedule.due_slots import gap as gap
from backburner.core.schedule.due_slots import is_too_far_ahead as is_too_far_ahead
from backburner.core.schedule.due_slots import next_run_at as next_run_at
from backburner.core.schedule.due_slots import slots as slots
from backburner.core.schedule.due_slots import upcoming as upcoming
from backburner.core.schedule.kinds import MAX_SCHEDULE_AHEAD as MAX_SCHEDULE_AHEAD
from backburner.core.schedule.kinds import MIN_INTERVAL as MIN_INTERVAL
from backburner.core.schedule.kinds import After as After
from backburner.core.schedule.kinds import AfterCondition as AfterCondition
from backburner.core.schedule.kinds import CatchUp as CatchUp
from backburner.core.schedule.kinds import Cron as Cron
from backburner.core.schedule.kinds import Event as Event
from backburner.core.schedule.kinds import Immediate as Immediate
from backburner.core.schedule.kinds import Interval as Interval
from backburner.core.schedule.kinds import Schedule as Schedule
from backburner.core.schedule.kinds import Scheduled as Scheduled
from backburner.core.schedule.kinds import check_event_source as check_event_source
from backburner.core.schedule.kinds import check_frequency as check_frequency
from backburner.core.schedule.kinds import check_schedule as check_schedule
from backburner.core.schedule.kinds import is_recurring as is_recurring
