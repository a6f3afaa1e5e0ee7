"""What requests about accounts say, and what they are answered."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    model_validator,
)

from backburner.core import accounts
from backburner.core.accounts import Role, Scope
from backburner.core.passwords import MAX_NAME_CHARS, MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS

#: Beyond any secret of ours, as a whole link.
LONGEST_LINK = 500


def _write_time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


Time = Annotated[AwareDatetime, PlainSerializer(_write_time, return_type=str)]
Login = Annotated[str, Field(min_length=1, max_length=MAX_PASSWORD_CHARS)]
Name = Annotated[str, Field(max_length=MAX_NAME_CHARS)]
#: One that is tried may be any; its length tells nothing.
Tried = Annotated[SecretStr, Field(max_length=MAX_PASSWORD_CHARS)]
Password = Annotated[SecretStr, Field(min_length=MIN_PASSWORD_CHARS, max_length=MAX_PASSWORD_CHARS)]
Secret = Annotated[SecretStr, Field(min_length=1, max_length=LONGEST_LINK)]
Scopes = Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))]


def bare(secret: SecretStr) -> str:
    """Take the secret out of the link that it may have come with."""
    return secret.get_secret_value().rpartition("#")[2].strip()


def _like(**example: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"example": example})


class SignIn(BaseModel):
    """Either a link, or a login and a password."""

    model_config = _like(login="ada", password="three words or more")  # noqa: S106 (an example)

    link: Secret | None = None
    login: Login | None = None
    password: Tried | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        by_password = self.login is not None and self.password is not None
        neither = self.login is None and self.password is None
        if not (neither if self.link is not None else by_password):
            raise ValueError("send a link, or a login and a password")
        return self


class ChangePassword(BaseModel):
    """The login is for those who have none yet, or want another; `current` for those who have."""

    model_config = _like(current="three words or more", password="four words or even more")  # noqa: S106

    login: Login | None = None
    current: Tried = SecretStr("")
    password: Password


class RedeemReset(BaseModel):
    model_config = _like(reset="bb_...", password="three words or more")  # noqa: S106

    reset: Secret
    password: Password


class Accept(BaseModel):
    model_config = _like(invitation="bb_...", login="ada", password="three words or more")  # noqa: S106

    invitation: Secret
    login: Login
    password: Password
    name: Name = ""


class NewToken(BaseModel):
    model_config = _like(name="calendar", scopes=["read"], expires="90d")

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
    scopes: Scopes = [Scope.READ]
    #: A length of time; None: it does not end by itself.
    expires: Annotated[str, Field(max_length=100)] | None = "90d"


class NewUser(BaseModel):
    model_config = _like(login="ada", name="Ada", role="member")

    login: Login
    name: Name = ""
    role: Role = Role.MEMBER


class NewInvitation(BaseModel):
    model_config = _like(name="Ada", role="member")

    #: For whom it is, as a reminder.
    name: Name = ""
    role: Role = Role.MEMBER


class UserChange(BaseModel):
    model_config = _like(disabled=True)

    name: Name | None = None
    role: Role | None = None
    disabled: bool | None = None


_USER = {
    "id": "u_5n1knykxeb8q1bhm3rwbhgjt0y",
    "login": "ada",
    "name": "Ada",
    "role": "member",
    "has_password": True,
    "created_at": "2026-11-16T12:00:00Z",
    "disabled_at": None,
}
_ONCE = {
    "secret": "bb_...",
    "link": "https://backburner.example/reset#bb_...",
    "expires_at": "2026-11-17T12:00:00Z",
}
_CREDENTIAL = {
    "id": "k_6jy475abgx9xhaq0dnv4mc4j0a",
    "name": "calendar",
    "scopes": ["read"],
    "created_at": "2026-11-16T12:00:00Z",
    "expires_at": None,
    "used_at": None,
    "is_this": False,
}


def _shown(**example: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"example": example})


class SignedIn(BaseModel):
    """The session is in the cookie."""

    model_config = _shown(id=_CREDENTIAL["id"], expires_at="2026-12-16T12:00:00Z")

    id: str
    expires_at: Time | None


class OnceOnly(BaseModel):
    """A secret that is shown this once, alone and as a link."""

    model_config = _shown(**_ONCE)

    secret: str
    link: str
    expires_at: Time | None


class UserBody(BaseModel):
    model_config = _shown(**_USER)

    id: str
    login: str | None
    name: str
    role: Role
    has_password: bool
    created_at: Time
    disabled_at: Time | None

    @classmethod
    def of(cls, user: accounts.User) -> Self:
        return cls(
            id=user.id,
            login=user.login,
            name=user.name,
            role=user.role,
            has_password=user.has_password,
            created_at=user.created_at,
            disabled_at=user.disabled_at,
        )


class AddedUser(BaseModel):
    """A new user, and what they set their password with."""

    model_config = _shown(user=_USER, reset=_ONCE)

    user: UserBody
    reset: OnceOnly


class CredentialBody(BaseModel):
    model_config = _shown(**_CREDENTIAL)

    id: str
    name: str
    scopes: list[Scope]
    created_at: Time
    expires_at: Time | None
    used_at: Time | None
    #: Whether this request came with it.
    is_this: bool

    @classmethod
    def of(cls, credential: accounts.Credential, shown: str) -> Self:
        return cls(
            id=credential.id,
            name=credential.name,
            scopes=sorted(credential.scopes),
            created_at=credential.created_at,
            expires_at=credential.expires_at,
            used_at=credential.used_at,
            is_this=credential.id == shown,
        )


class InvitationBody(BaseModel):
    """An invitation that nobody has used; its secret is kept nowhere."""

    model_config = _shown(
        id=_CREDENTIAL["id"],
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
    created_at: Time
    expires_at: Time | None

    @classmethod
    def of(cls, invitation: accounts.Invitation) -> Self:
        return cls(
            id=invitation.id,
            name=invitation.name,
            role=invitation.role,
            made_by=invitation.made_by,
            created_at=invitation.created_at,
            expires_at=invitation.expires_at,
        )


class MadeToken(BaseModel):
    """A token that is shown this once."""

    model_config = _shown(id=_CREDENTIAL["id"], token="bb_...", expires_at=None)  # noqa: S106

    id: str
    token: str
    expires_at: Time | None
