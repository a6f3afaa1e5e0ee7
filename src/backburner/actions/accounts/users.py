"""Users: the owner, and accounts that operators invite, change and disable."""

from collections.abc import Collection, Sequence
from functools import partial

from backburner.actions import steps
from backburner.actions.accounts import rate_limit
from backburner.actions.accounts.credentials import (
    SIGN_IN_KINDS,
    IssuedCredential,
    issue,
    revoke_credentials,
)
from backburner.actions.accounts.passwords import hash_password
from backburner.actions.accounts.sign_in import set_password, start_session
from backburner.actions.browse import Page, make_page
from backburner.actions.deps import Deps
from backburner.core import transitions
from backburner.core.accounts import (
    Act,
    AuditEntry,
    Caller,
    CredentialKind,
    Invitation,
    Role,
    User,
    role_of,
    scopes_of,
    secret_digest,
)
from backburner.core.conversation import Status
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import ConversationId, UserId, new_user_id
from backburner.core.passwords import check_login, check_name, check_password
from backburner.core.work import views
from backburner.core.work.views import TaskStatus
from backburner.ports import Hint, HintKind, PageKey, Tx

#: Questions read at a time.
_BATCH = 100


async def ensure_owner(deps: Deps) -> User | None:
    """Create the owner in an empty database; None: the owner was erased."""

    def work(tx: Tx) -> User | None:
        owner = tx.accounts.ensure_owner(now=tx.now)
        return tx.accounts.load(owner) if owner else None

    return await deps.store.transact(work)


async def find(deps: Deps, login: str | None) -> User:
    """Find an enabled user by login; without a login, the owner."""

    def work(tx: Tx) -> User:
        name = check_login(login) if login else None
        user = tx.accounts.find_login(name)[0] if name else tx.accounts.ensure_owner(now=tx.now)
        if user is None:
            raise NotFound("There is no enabled user with this login.", hint="Check the login.")
        return tx.accounts.load(user)

    return await deps.store.transact(work)


async def has_only_owner(deps: Deps) -> bool:
    """Check whether the only user is an owner without a login."""
    first_two = await deps.store.read(lambda tx: tx.accounts.page(limit=2))
    return [user.login for user in first_two] == [None]


async def has_any_password(deps: Deps) -> bool:
    return await deps.store.read(lambda tx: tx.accounts.has_any_password())


async def list_users(deps: Deps, after: PageKey | None, *, limit: int) -> Page[User]:
    (last_id,) = after or ("",)
    rows = await deps.store.read(lambda tx: tx.accounts.page(after=last_id, limit=limit + 1))
    return make_page(rows, limit, lambda last: (last.id,))


async def load_known(deps: Deps, user_ids: Collection[UserId]) -> Sequence[User]:
    """Load those of some users that there still are. Only for operators."""
    return await deps.store.read(lambda tx: tx.accounts.known(user_ids))


async def add(
    deps: Deps, *, actor: UserId, login: str, name: str, role: Role
) -> tuple[User, IssuedCredential]:
    """Add a user, and issue the secret with which they set their own password."""
    login, name, user = check_login(login), check_name(name), new_user_id()

    def work(tx: Tx) -> tuple[User, IssuedCredential]:
        _add(tx, user, login=login, name=name, role=role)
        tx.audit.record(Act.USER_ADDED, actor=actor, user=user, detail=f"{login}, {role}")
        return tx.accounts.load(user), issue(tx, user, CredentialKind.RESET)

    return await deps.store.transact(work)


async def reset_password(deps: Deps, user: UserId, *, actor: UserId) -> IssuedCredential:
    """Issue a reset secret; the current password stays valid until it is used.

    Whoever has the secret can use the account, so the user sees who made it.
    """

    def work(tx: Tx) -> IssuedCredential:
        tx.users.lock(user)
        if tx.accounts.load(user).login is None:
            raise Conflict(
                "This user signs in with a link.", hint="Create one with `backburner user link`."
            )
        tx.credentials.revoke_all(user, [CredentialKind.RESET], now=tx.now)
        tx.audit.record(Act.PASSWORD_RESET, actor=actor, user=user)
        return issue(tx, user, CredentialKind.RESET)

    return await deps.store.transact(work)


async def change(
    deps: Deps,
    user: UserId,
    *,
    actor: UserId,
    name: str | None = None,
    role: Role | None = None,
    disabled: bool | None = None,
) -> User:
    """Change a user; a new role or disabling them revokes their credentials.

    Disabling also stops their work. Once they are enabled again, it stays paused until they resume
    it.
    """

    def work(tx: Tx) -> User:
        operators = tx.accounts.lock_operators()
        before = tx.accounts.load(user)
        tx.accounts.change(user, name=name, role=role)
        record = partial(tx.audit.record, actor=actor, user=user)
        if name is not None and name != before.name:
            record(Act.USER_CHANGED, detail=name)
        if role is not None and role is not before.role:
            record(Act.ROLE_CHANGED, detail=role.value)
        if disabled is not None and disabled != (before.disabled_at is not None):
            record(Act.USER_DISABLED if disabled else Act.USER_ENABLED)
            tx.accounts.disable(user, at=tx.now if disabled else None)
            if disabled:
                _stop_work(tx, user)
        after = tx.accounts.load(user)
        _require_operator(operators, after)
        if after.role is not before.role or (disabled and before.disabled_at is None):
            revoke_credentials(tx, user, (*SIGN_IN_KINDS, CredentialKind.INVITATION))
        return after

    name = None if name is None else check_name(name)
    return await deps.store.transact(work)


async def invite(deps: Deps, caller: Caller, *, name: str, role: Role) -> IssuedCredential:
    """Issue an invitation with which one person can create an account."""
    name = check_name(name)

    def work(tx: Tx) -> IssuedCredential:
        tx.audit.record(Act.USER_INVITED, actor=caller.user, detail=f"{name}, {role}".strip(", "))
        return issue(tx, caller.user, CredentialKind.INVITATION, scopes_of(role), name=name)

    return await deps.store.transact(work)


async def list_invitations(deps: Deps, after: PageKey | None, *, limit: int) -> Page[Invitation]:
    """List the valid invitations of all operators."""
    (last_id,) = after or ("",)
    rows = await deps.store.read(
        lambda tx: tx.credentials.invitations(after=last_id, limit=limit + 1, now=tx.now)
    )
    return make_page(rows, limit, lambda last: (last.id,))


async def revoke_invitation(deps: Deps, invitation_id: str, *, actor: UserId) -> None:
    def work(tx: Tx) -> None:
        tx.credentials.revoke_invitation(invitation_id, now=tx.now)
        tx.audit.record(Act.INVITATION_REVOKED, actor=actor, detail=invitation_id)

    await deps.store.transact(work)


async def accept(
    deps: Deps,
    secret: str,
    *,
    login: str,
    password: str,
    name: str,
    address: str,
    device: str = "",
) -> IssuedCredential | None:
    """Create an account with an invitation, and start a session. None: no longer valid."""
    login, name, user = check_login(login), check_name(name), new_user_id()
    check_password(password, login=login)
    kind = CredentialKind.INVITATION
    inviter = await rate_limit.find_by_secret(deps, secret, kind, address=address)
    if inviter is None:
        return None
    role = role_of(inviter[1])
    hashed = await hash_password(password, deps.password_cost)

    def work(tx: Tx) -> IssuedCredential | None:
        if not tx.credentials.consume(secret_digest(secret), kind, now=tx.now):
            return None
        _add(tx, user, login=login, name=name, role=role)
        tx.audit.record(Act.INVITATION_ACCEPTED, actor=user, user=user, detail=f"{login}, {role}")
        set_password(tx, user, login, hashed)
        return start_session(tx, user, device=device)

    return await deps.store.transact(work)


async def record_backup(deps: Deps, actor: UserId) -> None:
    """Record that somebody takes a copy of everything."""
    await deps.store.transact(lambda tx: tx.audit.record(Act.BACKUP_MADE, actor=actor))


async def list_acts_on(deps: Deps, user: UserId, *, limit: int) -> Sequence[AuditEntry]:
    """List what others did to the account of a user, newest first."""
    return await deps.store.read(lambda tx: tx.audit.of_user(user, limit=limit))


async def list_acts(deps: Deps, after: PageKey | None, *, limit: int) -> Page[AuditEntry]:
    """List administrative acts, newest first."""
    (last_id,) = after or ("",)
    rows = await deps.store.read(lambda tx: tx.audit.page(before=last_id, limit=limit + 1))
    return make_page(rows, limit, lambda last: (last.id,))


def _add(tx: Tx, user: UserId, *, login: str, name: str, role: Role) -> None:
    if not tx.accounts.add(user, login=login, name=name, role=role, now=tx.now):
        raise Conflict("That login is taken.", hint="Choose another.")


def _stop_work(tx: Tx, user: UserId) -> None:
    """Stop the runs of a user, withdraw questions of their work, and pause what is scheduled."""
    tx.users.lock(user)
    for conversation_id in tx.personal_data.stop_runs(user):
        tx.hint(Hint(HintKind.CANCEL, user, conversation_id))
    for conversation_id in sorted(_asking(tx, user)):
        conversation = tx.conversations.lock(user, conversation_id)
        # A proposal does nothing until it is answered, and may wait for its user.
        is_proposed = views.task_status(conversation) is TaskStatus.PROPOSED
        if conversation.status is Status.WAITING_INPUT and not is_proposed:
            has_work = conversation.schedule is not None
            stop = transitions.pause if has_work else partial(transitions.cancel, now=tx.now)
            steps.save(tx, stop(conversation))


def _asking(tx: Tx, user: UserId) -> set[ConversationId]:
    """Find the conversations with open questions."""
    asking, after = set[ConversationId](), None
    while rows := tx.browse.questions(user, after, limit=_BATCH):
        asking.update(row.conversation_id for row in rows)
        after = (rows[-1].question.asked_at, rows[-1].question.id)
    return asking


def _require_operator(before: Sequence[UserId], changed: User) -> None:
    remains = changed.role is Role.OPERATOR and changed.disabled_at is None
    if list(before) == [changed.id] and not remains:
        raise Conflict(
            "This is the only operator, and accounts need one.",
            hint="Make another user an operator first.",
        )
