import ast
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.i18n import (
    DEFAULT_LOCALE,
    LOCALES_FOLDER,
    Catalogue,
    Plural,
    catalogue,
    language_of,
    placeholders,
    plural_form,
    t,
    terms,
)

PROJECT = Path(__file__).resolve().parents[1]
LOCALES = catalogue().locales
"""The others hold how people ask for something, and no texts: those come from en-US."""
TEXT_CALLS = {"t", "UserError", "Denied", "StartupError"}
SMALL_AND_ODD_COUNTS = (*range(200), 1_000_000, 0.5, 1.5)


def written(folder: Path, **files: str) -> Catalogue:
    for name, content in files.items():
        (folder / f"{name.replace('_', '-')}.toml").write_text(content, "utf-8")
    return Catalogue.load(folder)


def plurals(locale: str) -> Iterator[tuple[str, Plural]]:
    for key, text in catalogue().texts(locale).items():
        if not isinstance(text, str):
            yield key, text


def keys_in_code() -> Iterator[tuple[str, str]]:
    for source in (*PROJECT.glob("bot/**/*.py"), *PROJECT.glob("cogs/**/*.py")):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            name = node.func.id if isinstance(node.func, ast.Name) else name
            key = node.args[0]
            if name in TEXT_CALLS and isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, f"{source.relative_to(PROJECT)}:{node.lineno}"


def test_every_locale_has_texts() -> None:
    assert len(LOCALES) >= 12
    assert all(catalogue().texts(locale) for locale in LOCALES)


def test_requests_are_heard_in_twelve_locales() -> None:
    ours = {"en-US", "pt-BR", "es-419", "ja", "zh-CN", "zh-TW", "vi", "de", "fr", "ko", "ru", "id"}
    for intent in ("remember", "forget"):
        assert {one for one in LOCALES if terms(one, f"intents.{intent}.ask")} == ours


@pytest.mark.parametrize("locale", LOCALES)
def test_a_locale_has_exactly_the_texts_of_en_us(locale: str) -> None:
    expected = catalogue().texts(DEFAULT_LOCALE).keys()
    found = catalogue().texts(locale).keys()
    assert (sorted(expected - found), sorted(found - expected)) == ([], [])


@pytest.mark.parametrize("locale", LOCALES)
def test_a_text_has_the_placeholders_of_en_us(locale: str) -> None:
    texts = catalogue().texts(locale)
    expected = {key: placeholders(text) for key, text in catalogue().texts(DEFAULT_LOCALE).items()}
    assert {k: placeholders(v) for k, v in texts.items() if placeholders(v) != expected[k]} == {}


@pytest.mark.parametrize("locale", LOCALES)
def test_no_text_is_empty(locale: str) -> None:
    assert [key for key, text in catalogue().texts(locale).items() if not texts_of(text)] == []


def texts_of(text: str | Plural) -> bool:
    return all(form.strip() for form in ([text] if isinstance(text, str) else text.values()))


@pytest.mark.parametrize("locale", LOCALES)
def test_a_plural_has_every_form_its_language_uses_and_no_other(locale: str) -> None:
    usual = {plural_form(locale, count) for count in range(200)} | {"other"}
    possible = {plural_form(locale, count) for count in SMALL_AND_ODD_COUNTS} | {"other"}
    wrong = {k: set(forms) for k, forms in plurals(locale) if not usual <= set(forms) <= possible}
    assert wrong == {}


@pytest.mark.parametrize("locale", LOCALES)
def test_no_term_list_is_empty(locale: str) -> None:
    assert [key for key, found in catalogue().lists(locale).items() if not found] == []


def test_every_key_named_in_code_has_a_text() -> None:
    texts = catalogue().texts(DEFAULT_LOCALE)
    assert [f"{place} {key}" for key, place in keys_in_code() if key not in texts] == []


def test_the_scan_of_the_code_finds_keys() -> None:
    assert len(list(keys_in_code())) > 0


def test_a_text_is_filled_in_and_a_missing_value_stays_visible(tmp_path: Path) -> None:
    texts = written(tmp_path, en_US='[ui]\nhello = "Hello {name}, {p:1} {when}"')
    assert texts.text("ui.hello", "en-US", {"name": "{when}"}) == "Hello {when}, {p:1} {when}"


def test_the_parameters_of_an_error_may_have_any_name() -> None:
    assert t("time.just_now", "en-US", key="a", locale="b", count=2) == "just now"


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        ("pt-BR", "brasileiro"),
        ("pt", "brasileiro"),
        ("pt-PT", "brasileiro"),
        ("en-GB", "english"),
        ("en", "english"),
        ("xx", "english"),
        ("", "english"),
    ],
)
def test_an_unknown_locale_reads_another_region_then_en_us(
    tmp_path: Path, locale: str, expected: str
) -> None:
    texts = written(tmp_path, en_US='[ui]\na = "english"', pt_BR='[ui]\na = "brasileiro"')
    assert texts.text("ui.a", locale, {}) == expected


def test_a_text_that_a_locale_lacks_comes_from_en_us(tmp_path: Path) -> None:
    texts = written(tmp_path, en_US='[ui]\na = "english"', ja='[ui]\nb = "日本語"')
    assert texts.text("ui.a", "ja", {}) == "english"


def test_a_missing_text_is_its_key_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = written(tmp_path, en_US='[ui]\na = "english"')
    with caplog.at_level(logging.WARNING):
        assert [texts.text("ui.gone", "ja", {}) for _ in range(3)] == ["ui.gone"] * 3
    assert len(caplog.records) == 1


def test_a_count_chooses_the_form_of_the_language_of_the_text(tmp_path: Path) -> None:
    forms = 'one = "{count} memory"\nother = "{count} memories"'
    texts = written(tmp_path, en_US=f"[ui.n]\n{forms}", ja='[ui.n]\nother = "{count}件"')
    in_english = [texts.text("ui.n", "en-US", {"count": n}) for n in (0, 1, 2)]
    assert in_english == ["0 memories", "1 memory", "2 memories"]
    assert texts.text("ui.n", "ja", {"count": 1}) == "1件"
    assert texts.text("ui.n", "en-US", {}) == "{count} memories"


@pytest.mark.parametrize(
    ("locale", "forms"),
    [
        ("en-US", {0: "other", 1: "one", 2: "other", 11: "other"}),
        ("de", {0: "other", 1: "one", 2: "other", 1.5: "other"}),
        ("pt-BR", {0: "one", 1: "one", 1.5: "one", 2: "other", 1_000_000: "many"}),
        ("fr", {0: "one", 1: "one", 1.5: "one", 2: "other", 2_000_000: "many"}),
        ("es-419", {0: "other", 1: "one", 1.5: "other", 2: "other", 1_000_000: "many"}),
        ("ja", {0: "other", 1: "other", 2: "other"}),
        ("ko", {1: "other"}),
        ("vi", {1: "other"}),
        ("id", {1: "other"}),
        ("zh-TW", {1: "other"}),
        ("xx", {1: "other"}),
    ],
)
def test_plural_forms_follow_the_cldr(locale: str, forms: dict[float, str]) -> None:
    assert {count: plural_form(locale, count) for count in forms} == forms


def test_whole_numbers_and_numbers_with_a_fraction_differ() -> None:
    assert (plural_form("en-US", 1), plural_form("en-US", 1.0)) == ("one", "other")


def test_russian_has_four_forms() -> None:
    forms = {
        "one": [1, 21, 101, 121],
        "few": [2, 4, 22, 104, 123],
        "many": [0, 5, 11, 12, 14, 20, 25, 111, 112, 114],
        "other": [1.5, 2.0],
    }
    found = {
        form: [n for n in counts if plural_form("ru", n) == form] for form, counts in forms.items()
    }
    assert found == forms


def test_terms_are_the_list_under_a_key_and_nothing_elsewhere(tmp_path: Path) -> None:
    texts = written(tmp_path, en_US='[words]\ngreet = ["hello", "hi"]')
    assert texts.lists("en-US")["words.greet"] == ("hello", "hi")
    assert terms("en-US", "words.nothing_here") == []
    assert terms("xx", "intents.remember.verbs") == []


@pytest.mark.parametrize("value", ["1", "true", "[1, 2]", '["a", ["b"]]'])
def test_a_file_with_anything_but_texts_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"ui\.a"):
        written(tmp_path, en_US=f"[ui]\na = {value}")


def test_the_folder_stands_beside_the_package() -> None:
    assert LOCALES_FOLDER == PROJECT / "locales"


def test_the_language_of_a_locale_is_what_stands_before_the_region() -> None:
    assert [language_of(locale) for locale in ("pt-BR", "ja", "")] == ["pt", "ja", ""]
