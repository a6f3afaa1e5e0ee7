"""A hint carries ids and nothing else."""

import pytest

from backburner.core.errors import BadRequest, TooLarge
from backburner.core.ids import ConversationId, UserId, new_conversation_id, new_user_id
from backburner.ports import MAX_ID_CHARS, Hint, HintKind


def test_a_hint_takes_the_ids_that_are_made() -> None:
    user, conversation = new_user_id(), new_conversation_id()
    hint = Hint(HintKind.WORK, user, conversation)

    assert (hint.user, hint.conversation) == (user, conversation)


def test_an_id_that_is_too_long_is_refused_and_not_quoted() -> None:
    text = "secret" * 2000
    with pytest.raises(TooLarge) as refused:
        Hint(HintKind.CHANGED, UserId(text))

    assert refused.value.limit == MAX_ID_CHARS
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "Meet me at noon.", "u_1:c_2", "u_1\n", "u_é"])
def test_what_is_no_id_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        Hint(HintKind.CHANGED, conversation=ConversationId(text))

    assert not text or text not in str(refused.value)
