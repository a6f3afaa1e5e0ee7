"""Pages for browsers, without third-party assets or a build step."""
