"""Programs that use their own sign-in: what is offered of them, and what a grant covers."""

from backburner.core.signed_in.rules import MAX_ARGUMENTS as MAX_ARGUMENTS
from backburner.core.signed_in.rules import SIGNED_IN_TOOL as SIGNED_IN_TOOL
from backburner.core.signed_in.rules import granted_programs as granted_programs
from backburner.core.signed_in.rules import lasting_arguments as lasting_arguments
from backburner.core.signed_in.rules import only_reads as only_reads
from backburner.core.signed_in.rules import refuse as refuse
from backburner.core.signed_in.rules import show_line as show_line
from backburner.core.signed_in.table import PROGRAMS as PROGRAMS
