"""A command group that lists its objects when no command is given."""

import click

LIST = "list"
HELP_OPTIONS = ("-h", "--help")


class ListOrShowGroup(click.Group):
    """Also shows an object that is named in place of a command."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        has_command = arguments and arguments[0] in (*self.commands, *HELP_OPTIONS)
        return super().parse_args(context, arguments if has_command else [LIST, *arguments])


class ListGroup(click.Group):
    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        has_command = arguments and (
            not arguments[0].startswith("-") or arguments[0] in HELP_OPTIONS
        )
        return super().parse_args(context, arguments if has_command else [LIST, *arguments])
