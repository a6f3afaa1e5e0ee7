"""Tool calls: the journal of runs, how a call ends, and the record of calls on connections."""
