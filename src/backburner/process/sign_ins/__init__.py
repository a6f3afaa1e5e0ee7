"""Sign-ins of programs: found in their own files, and used by their own program alone."""
