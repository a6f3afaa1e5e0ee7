"""The conversation and its rules. Pure: values in, values out; no I/O, no clock, no logging."""
