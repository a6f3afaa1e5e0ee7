"""Master keys: where they come from, who may read them, and the file that is made."""

import base64
import os
import select
import stat
from pathlib import Path

import pytest

from backburner.core.errors import BadSetting, Conflict, VaultLocked
from backburner.vault.master_keys import KEY_BYTES, MasterKey, MasterKeys, parse_master_keys

OLD, NEW = (MasterKey(name, name.encode().ljust(KEY_BYTES, b".")) for name in ("old", "new"))


def line(key: MasterKey) -> str:
    return f"{key.id}:{base64.b64encode(key.secret).decode()}"


def write(path: Path, *keys: MasterKey, mode: int = 0o600) -> Path:
    path.write_text("# a comment\n" + "".join(f"{line(key)}\n" for key in keys))
    path.chmod(mode)
    return path


def test_keys_are_read_from_a_variable_and_from_lines() -> None:
    assert parse_master_keys(f"{line(NEW)}, {line(OLD)}", "it") == (NEW, OLD)
    assert parse_master_keys(f"# both\n{line(NEW)}\n\n{line(OLD)}\n", "it") == (NEW, OLD)
    assert parse_master_keys("", "it") == ()


@pytest.mark.parametrize(
    "text",
    [
        "c2VjcmV0c2VjcmV0",
        f"{line(OLD)[:-4]}",
        f"old one:{line(OLD)}",
        "old:c2Vjcm*0",
        f":{line(OLD)}",
    ],
)
def test_what_is_no_key_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(BadSetting, match="VARIABLE has a master key that is not") as refused:
        parse_master_keys(text, "VARIABLE")

    assert "c2Vj" not in str(refused.value)
    assert line(OLD)[5:20] not in str(refused.value)


def test_two_keys_of_one_id_are_refused() -> None:
    with pytest.raises(BadSetting, match="two master keys with the id old"):
        parse_master_keys(f"{line(OLD)},{line(OLD)}", "it")


def test_a_key_is_not_shown_where_it_is_printed() -> None:
    assert str(OLD) == repr(OLD) == "MasterKey(id='old')"


def test_keys_that_are_given_come_before_any_file(tmp_path: Path) -> None:
    own, named = write(tmp_path / "own", OLD), write(tmp_path / "named", OLD)
    keys = MasterKeys(own, given=(NEW,), named=named)

    assert keys.all() == (NEW,)
    assert keys.find("old") is None
    assert keys.source == "BACKBURNER_MASTER_KEYS"


def test_a_named_file_comes_before_that_of_the_data_folder(tmp_path: Path) -> None:
    own, named = write(tmp_path / "own", OLD), write(tmp_path / "named", NEW)

    assert MasterKeys(own, named=named).all() == (NEW,)
    assert MasterKeys(own).all() == (OLD,)


def test_the_file_that_is_made_has_one_key_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "master_keys"
    redacted = list[str]()
    keys = MasterKeys(path, redact=redacted.extend)
    assert keys.all() == ()

    made = keys.make()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert parse_master_keys(path.read_text(), "it") == (made,)
    assert MasterKeys(path).all() == keys.all() == (made,)
    assert redacted[0] in path.read_text()
    assert base64.b64decode(redacted[0]) == made.secret
    assert len(set(made.secret)) > 16


def test_a_file_that_another_process_made_in_the_meantime_is_used(tmp_path: Path) -> None:
    path = tmp_path / "master_keys"
    keys = MasterKeys(path)
    assert keys.all() == ()
    write(path, OLD)

    assert keys.make() == OLD
    assert keys.all() == (OLD,)


def test_a_key_that_is_brought_is_found_without_a_restart(tmp_path: Path) -> None:
    path = write(tmp_path / "master_keys", OLD)
    keys = MasterKeys(path)
    assert keys.find("new") is None

    write(path, NEW, OLD)

    assert keys.find("new") == NEW
    assert keys.all()[0] == NEW


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_of_the_data_folder_that_others_have_access_to_is_refused(
    tmp_path: Path, mode: int
) -> None:
    path = write(tmp_path / "master_keys", OLD, mode=mode)

    with pytest.raises(VaultLocked, match=r"open to other users\. Run: chmod 600"):
        MasterKeys(path).all()


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o620])
def test_a_named_file_is_for_its_owner_and_group_to_read(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path / "named", OLD, mode=0o440)
    assert MasterKeys(tmp_path / "own", named=path).all() == (OLD,)

    path.chmod(mode)
    with pytest.raises(VaultLocked, match="open to other users"):
        MasterKeys(tmp_path / "own", named=path).all()


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"\xff\xfe", b"old:short\n"])
def test_a_file_that_was_cut_off_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "master_keys"
    path.write_bytes(content)
    path.chmod(0o600)
    keys = MasterKeys(path)

    with pytest.raises(VaultLocked, match=str(path)):
        keys.all()
    with pytest.raises(VaultLocked, match=str(path)):
        keys.make()
    assert path.read_bytes() == content


def test_a_named_file_that_is_missing_is_not_made(tmp_path: Path) -> None:
    keys = MasterKeys(tmp_path / "own", named=tmp_path / "named")

    with pytest.raises(VaultLocked, match="does not exist"):
        keys.all()
    with pytest.raises(VaultLocked, match="no master key"):
        keys.make()
    assert list(tmp_path.iterdir()) == []


def test_a_new_key_comes_first_and_the_others_stay(tmp_path: Path) -> None:
    path = write(tmp_path / "master_keys", OLD)
    keys = MasterKeys(path)

    added = keys.add_primary()

    assert MasterKeys(path).all() == keys.all() == (added, OLD)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_only_keys_that_are_not_needed_are_deleted_and_never_the_primary_one(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "master_keys", NEW, OLD, MasterKey("older", OLD.secret))
    keys = MasterKeys(path)

    assert keys.keep({"old"}) == ["older"]
    assert MasterKeys(path).all() == (NEW, OLD)
    assert keys.keep(set()) == ["old"]
    assert MasterKeys(path).all() == (NEW,)
    assert keys.keep(set()) == ()


def test_a_file_behind_a_link_is_replaced_where_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    real = write(folder / "keys", OLD)
    (tmp_path / "named").symlink_to(real)
    keys = MasterKeys(tmp_path / "own", named=tmp_path / "named")

    added = keys.add_primary()

    assert (tmp_path / "named").readlink() == real
    assert parse_master_keys(real.read_text(), "it") == (added, OLD)


def test_given_keys_are_never_changed(tmp_path: Path) -> None:
    keys = MasterKeys(tmp_path / "own", given=(NEW, OLD))

    with keys.changing_file(), pytest.raises(Conflict, match="BACKBURNER_MASTER_KEYS"):
        keys.add_primary()
    assert keys.keep(set()) == ()
    assert keys.all() == (NEW, OLD)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    keys = MasterKeys(tmp_path / "missing" / "master_keys")

    with pytest.raises(VaultLocked, match="cannot be written: no such file"):
        keys.make()
    with pytest.raises(VaultLocked, match="cannot be written"), keys.changing_file():
        raise AssertionError


def test_a_file_is_changed_by_one_process_at_a_time(tmp_path: Path) -> None:
    first, second = (MasterKeys(tmp_path / "master_keys") for _ in range(2))
    first.make()
    ours, theirs = os.pipe()
    with first.changing_file():
        child = os.fork()
        if not child:
            with second.changing_file():
                second.add_primary()
                os.write(theirs, b"done")
            os._exit(0)
        # Time enough for a process that does not wait.
        assert select.select([ours], [], [], 0.2)[0] == []
        assert len(first.reload()) == 1
    assert os.read(ours, 4) == b"done"
    os.waitpid(child, 0)
    assert len(first.reload()) == 2
    os.close(ours)
    os.close(theirs)
