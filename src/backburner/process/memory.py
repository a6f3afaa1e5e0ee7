"""How much memory there is to be had."""

from pathlib import Path

MEMORY = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def free_memory(memory: Path = MEMORY, group: Path = CGROUP) -> int | None:
    """Tell how many bytes this process could still get, where the system says so."""
    try:
        lines = dict(line.split(":", 1) for line in memory.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    try:
        most = int((group / "memory.max").read_text())
        return max(0, min(free, most - int((group / "memory.current").read_text())))
    except (OSError, ValueError):
        return free
