"""A command group that lists its objects when no command is given."""

import click

LIST = "list"


class ListGroup(click.Group):
    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        has_command = arguments and (not arguments[0].startswith("-") or arguments[0] == "--help")
        return super().parse_args(context, arguments if has_command else [LIST, *arguments])
