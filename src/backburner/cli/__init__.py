"""The command line. `commands/` has one module per noun, imported when used."""
