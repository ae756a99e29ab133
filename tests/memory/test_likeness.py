"""Near-duplicates are told from facts that only sound alike."""

import pytest

from bot.memory.likeness import likeness, says_nearly_the_same

THRESHOLD = 92


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("likes green tea in the morning", "likes green tea in the mornings", True),
        ("likes green tea in the morning", "likes black tea in the evening", False),
        ("has lived in the town for 12 years", "has lived in the town for 13 years", False),
        ("goes to school with young Marta", "goes to school with young Marto", False),
        ("goes out with {p:101} each day", "goes out with {p:102} each day", False),
        ("goes out with {p:101} each day", "goes out with {p:101} each days", True),
        ("lent {p:1} money that {p:2} needed", "lent {p:2} money that {p:1} needed", False),
        ("has 2 dogs, and cats: 3 of them now", "has 3 dogs, and cats: 2 of them now", False),
        ("Rex is the dog that lives with us now", "Max is the dog that lives with us now", False),
        ("Ольга живёт в старом доме у реки", "Ольга живёт в старом доме у речки", False),
        ("アンは毎朝早く起きて犬と散歩をします", "アンは毎朝早く起きて犬と散歩をしてます", False),
        ("my friend luna lives right next door", "my friend lena lives right next door", False),
        ("i can eat nuts without any problem", "i can't eat nuts without any problem", False),
        ("she likes to swim in the cold sea", "she likes not to swim in the cold sea", False),
        ("we meet on monday at the town hall", "we meet on sunday at the town hall", False),
        ("we have three dogs in our old house", "we have there dogs in our old house", False),
        ("고양이 이름은 나비이고 서울에 삽니다", "고양이 이름은 초코이고 서울에 삽니다", False),
        (
            "我最好的朋友叫王小明住在上海的咖啡店附近",
            "我最好的朋友叫李小明住在上海的咖啡店附近",
            False,
        ),
        ("plays the flute at home each evening", "plays that flute at home each evening", True),
        ("keeps ３ umbrellas in the car", "keeps 3 umbrelas in the car", True),
    ],
)
def test_only_wording_may_differ_between_near_duplicates(text: str, other: str, same: bool) -> None:
    assert says_nearly_the_same(text, other, THRESHOLD) is same


def test_near_duplicates_begin_at_the_threshold() -> None:
    text, other = "plays the flute at home", "plays that flute at home"
    exactly = int(likeness(text, other))
    assert says_nearly_the_same(text, other, exactly)
    assert not says_nearly_the_same(text, other, exactly + 1)
