"""Whether a summary tells what its lines say, in their words and their script."""

from __future__ import annotations

import pytest

from bot.handoff.grounding import is_in_another_script, shares_a_word

ENGLISH = "We adopted a puppy on Saturday, she keeps me awake at night"
RUSSIAN = "Мы взяли щенка в субботу, она не даёт мне спать по ночам"
JAPANESE = "土曜日に子犬をもらったんだけど、夜なかなか寝かせてくれない"
CHINESE = "我们星期六领养了一只小狗，晚上它总是不让我睡觉"
KOREAN = "토요일에 강아지를 데려왔는데 밤에 잠을 못 자게 해요"
SPANISH = "El sábado adoptamos un cachorro y no me deja dormir por la noche"
PORTUGUESE = "No sábado a gente adotou um filhote que não me deixa dormir"
GERMAN = "Am Samstag haben wir einen Welpen geholt, nachts schlafe ich nicht mehr"

TOLD = [
    (ENGLISH, "Ann adopted a puppy that disturbs her sleep."),
    (ENGLISH, "On Saturday, Ann and her family got a dog."),
    (RUSSIAN, "Аня взяла щенка, который мешает ей спать."),
    (JAPANESE, "アンは子犬を飼い始めた。"),
    (JAPANESE, "アンは土曜日から犬と暮らしている。"),
    (CHINESE, "安领养了一只小狗。"),
    (KOREAN, "앤은 강아지를 데려왔다."),
    (SPANISH, "Ann adoptó un cachorro."),
    (PORTUGUESE, "Ann adotou um filhote."),
    (GERMAN, "Ann hat seit Samstag einen Welpen."),
    ("りんごたべた", "アンはりんごを食べた。"),
    ("犬飼いたい", "アンは犬を飼うことを望んでいる。"),
    ("寝る", "ベンは寝た。"),
    ("ラーメン！", "ベンはラーメンを食べたいと言った。"),
]
NOT_TOLD = [
    (ENGLISH, "I'm sorry, but I can't help with that."),
    (ENGLISH, "I cannot assist with this request because it is about them."),
    (ENGLISH, "The quarterly report was finished."),
    (RUSSIAN, "Извините, я не могу помочь вам с этим."),
    (RUSSIAN, "Компания построила новый завод."),
    (JAPANESE, "申し訳ありませんが、そのリクエストにはお応えできません。"),
    (JAPANESE, "会社は新しい工場を建てました。"),
    (
        "今日はありがとうございます、とても楽しかったです",
        "申し訳ございませんが、お手伝いできません。",
    ),
    (CHINESE, "抱歉，我无法处理这个请求。"),
    (CHINESE, "公司建造新工厂。"),
    (KOREAN, "죄송합니다. 요청을 도와드릴 수 없습니다."),
    (KOREAN, "회사는 새 공장을 지었습니다."),
    (SPANISH, "Lo siento, pero no puedo ayudar con eso."),
    (PORTUGUESE, "Desculpe, mas não posso ajudar com isso."),
    (GERMAN, "Es tut mir leid, aber dabei kann ich nicht helfen."),
    ("👍👍", "Ann agreed to everything."),
    ("https://example.org/quarterly/report", "The quarterly report was sent."),
]


@pytest.mark.parametrize(("said", "content"), TOLD)
def test_a_summary_has_words_of_its_lines(said: str, content: str) -> None:
    assert shares_a_word(content, [said], but=["Ann", "Ben", "アン", "ベン", "安", "앤"])


@pytest.mark.parametrize(("said", "content"), NOT_TOLD)
def test_a_refusal_or_an_invention_has_none(said: str, content: str) -> None:
    assert not shares_a_word(content, [said], but=["Ann", "Ben"])


def test_a_name_proves_nothing() -> None:
    assert shares_a_word("Robin won.", ["Robin sleeps"])
    assert not shares_a_word("Robin won.", ["Robin sleeps"], but=["Robin"])
    assert not shares_a_word("Robin Hood won.", ["Hood sleeps"], but=["Robin Hood"])


def test_any_of_the_lines_will_do() -> None:
    assert shares_a_word("The kettle broke.", ["hello", "my kettle"])
    assert not shares_a_word("The kettle broke.", [])


@pytest.mark.parametrize("said", [ENGLISH, RUSSIAN, JAPANESE, CHINESE, KOREAN])
@pytest.mark.parametrize("content", [ENGLISH, RUSSIAN, JAPANESE, KOREAN])
def test_a_summary_is_in_a_script_of_its_lines(said: str, content: str) -> None:
    chinese_and_japanese = {said, content} == {CHINESE, JAPANESE}
    assert is_in_another_script(content, [said]) is (said != content and not chinese_and_japanese)


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("ラーメン食べたい", "彼は拉麺希望"),
        ("ラーメンラーメン", "彼はらあめんがたべたい"),
        ("了解承知", "承知したとのことである"),
        ("ﾗｰﾒﾝﾗｰﾒﾝ", "ラーメンをたのむ"),
        ("ｈｅｌｌｏ ｔｈｅｒｅ", "said hello there"),
        ("смотри https://example.org/a/very/long/path/to/some/page/of/mine", "Он прислал ссылку."),
        ("123 !!! 👍", "He agreed with them."),
        ("ok", "Он согласился."),
        ("Он согласился.", "ok"),
    ],
)
def test_scripts_that_belong_together_or_cannot_be_judged_pass(said: str, content: str) -> None:
    assert not is_in_another_script(content, [said])


def test_a_script_counts_from_a_tenth_of_the_letters() -> None:
    assert not is_in_another_script("hello", ["ы" * 9 + "a"])
    assert is_in_another_script("hello", ["ы" * 10 + "a"])


def test_the_script_of_a_name_does_not_count() -> None:
    assert not is_in_another_script(
        "Ольга Петровна ate", ["she ate it all"], but=["Ольга Петровна"]
    )
    assert is_in_another_script("Ольга Петровна ate", ["she ate it all"])
