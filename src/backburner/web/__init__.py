"""Pages for browsers: files of this package, with nothing from elsewhere and nothing to build."""
