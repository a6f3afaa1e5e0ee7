"""Users and invitations, signing in, and passwords."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field, SecretStr, model_validator

from backburner.api.schemas.base import example, strict_example
from backburner.core import accounts
from backburner.core.accounts import Role
from backburner.core.passwords import MAX_NAME_CHARS, MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS

MAX_LINK_CHARS = 500

Login = Annotated[str, Field(min_length=1, max_length=MAX_PASSWORD_CHARS)]
DisplayName = Annotated[str, Field(max_length=MAX_NAME_CHARS)]
#: A password to check: it has no minimum length, so that the error reveals nothing.
CheckedPassword = Annotated[SecretStr, Field(max_length=MAX_PASSWORD_CHARS)]
NewPassword = Annotated[
    SecretStr, Field(min_length=MIN_PASSWORD_CHARS, max_length=MAX_PASSWORD_CHARS)
]
#: The secret of a link, alone or with the link around it.
LinkSecret = Annotated[SecretStr, Field(min_length=1, max_length=MAX_LINK_CHARS)]

_USER = {
    "id": "u_5n1knykxeb8q1bhm3rwbhgjt0y",
    "login": "ada",
    "name": "Ada",
    "role": "member",
    "has_password": True,
    "created_at": "2026-11-16T12:00:00Z",
    "disabled_at": None,
}
_CREDENTIAL_ID = "k_6jy475abgx9xhaq0dnv4mc4j0a"
_LINK = {
    "secret": "bb_...",
    "link": "https://backburner.example/reset#bb_...",
    "expires_at": "2026-11-17T12:00:00Z",
}


def read_link_secret(link: SecretStr) -> str:
    """Return the secret, without the link around it."""
    return link.get_secret_value().rpartition("#")[2].strip()


class SignInBody(BaseModel):
    """Either a link, or a login and a password."""

    model_config = strict_example(login="ada", password="three words or more")  # noqa: S106 (an example)

    link: LinkSecret | None = None
    login: Login | None = None
    password: CheckedPassword | None = None

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        has_both = self.login is not None and self.password is not None
        has_neither = self.login is None and self.password is None
        if not (has_neither if self.link is not None else has_both):
            raise ValueError("send a link, or a login and a password")
        return self


class PasswordChangeBody(BaseModel):
    """`login` sets a first login or a new one; `current` is required if there is a password."""

    model_config = strict_example(
        current="three words or more",
        password="four words or even more",  # noqa: S106 (an example)
    )

    login: Login | None = None
    current: CheckedPassword = SecretStr("")
    password: NewPassword


class PasswordResetBody(BaseModel):
    model_config = strict_example(reset="bb_...", password="three words or more")  # noqa: S106

    reset: LinkSecret
    password: NewPassword


class InvitationAcceptanceBody(BaseModel):
    model_config = strict_example(
        invitation="bb_...",
        login="ada",
        password="three words or more",  # noqa: S106 (an example)
    )

    invitation: LinkSecret
    login: Login
    password: NewPassword
    name: DisplayName = ""


class NewUserBody(BaseModel):
    model_config = strict_example(login="ada", name="Ada", role="member")

    login: Login
    name: DisplayName = ""
    role: Role = Role.MEMBER


class NewInvitationBody(BaseModel):
    model_config = strict_example(name="Ada", role="member")

    name: DisplayName = Field(default="", description="The invited person, as a reminder.")
    role: Role = Role.MEMBER


class UserChangesBody(BaseModel):
    """Fields that are left out stay unchanged."""

    model_config = strict_example(disabled=True)

    name: DisplayName | None = None
    role: Role | None = None
    disabled: bool | None = None


class CreatedSessionOut(BaseModel):
    """A new session. Half of its secret is in the cookie."""

    model_config = example(
        id=_CREDENTIAL_ID,
        user=_USER["id"],
        expires_at="2026-12-16T12:00:00Z",
        key="0123456789abcdefghijklm",
    )

    id: str
    user: str = Field(description="The user who is signed in by it.")
    expires_at: datetime | None
    key: str = Field(
        description="The other half of the secret. Send it with each request of the session, in the"
        " header X-Backburner-Session."
    )


class SecretLinkOut(BaseModel):
    """A secret that is shown only once, alone and as a link."""

    model_config = example(**_LINK)

    secret: str
    link: str
    expires_at: datetime | None


class UserOut(BaseModel):
    model_config = example(**_USER)

    id: str
    login: str | None
    name: str
    role: Role
    has_password: bool
    created_at: datetime
    disabled_at: datetime | None

    @classmethod
    def of(cls, user: accounts.User) -> Self:
        return cls.model_validate(user, from_attributes=True)


class CreatedUserOut(BaseModel):
    """A new user, and the link to set the password with."""

    model_config = example(user=_USER, reset=_LINK)

    user: UserOut
    reset: SecretLinkOut


class InvitationOut(BaseModel):
    """An unused invitation. Its secret is not stored."""

    model_config = example(
        id=_CREDENTIAL_ID,
        name="Ada",
        role="member",
        made_by=_USER["id"],
        created_at="2026-11-16T12:00:00Z",
        expires_at="2026-11-23T12:00:00Z",
    )

    id: str
    name: str
    role: Role
    made_by: str
    created_at: datetime
    expires_at: datetime | None

    @classmethod
    def of(cls, invitation: accounts.Invitation) -> Self:
        return cls.model_validate(invitation, from_attributes=True)
