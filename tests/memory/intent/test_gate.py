import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.i18n import Catalogue, catalogue
from bot.memory.intent import (
    has_explicit_long_term_memory_intent,
    has_forget_intent,
    load_intent_packs,
)
from bot.memory.intent._pack import Pack, load_packs

asks_to_remember = has_explicit_long_term_memory_intent

REMEMBER = {
    "en-US": """
        remember that my dog's name is Biscuit
        hey bot, remember my main is Kayle
        madeleine remember that im left handed
        Can you remember that I moved to Denver?
        would you please remember that Sam is my cousin
        i'm colorblind. remember that!
        my sister is getting married in june remember this pls
        i need you to remember my brother is called Jonas
        would you mind remembering that i can't eat gluten
        u gotta remember i have epilepsy so no flashing gifs
        for future reference, I use she/her
        from now on, please call me Captain
        call me Mo from now on
        keep in mind im 15 so no swearing
        please bear in mind that english is not my first language
        never forget that I beat you at chess
        pls dont forget my pronouns are he/they
        i hate olives dont forget
        make a note: raid leader is Hana now
        jot down my gamertag, it's BluePanda77
        can you save in your memory that my mum is from Ghana
        commit this to memory: the guild bank code is with Theo
        please save my birthday, it's may 2
        put me down as vegan
        log this for the server: our mascot is a goose
        remember <@456> is my boyfriend
        REMEMBER THAT I AM ALLERGIC TO NUTS!!!
        pleaseee rememberrr i cant eat shellfish
        hola bot, remember que mi gato se llama Luna
    """,
    "pt-BR": """
        lembra que meu cachorro se chama Bidu
        lembre-se de que eu sou alérgico a camarão
        nao se esqueca de que eu tenho medo de palhaço
        vc pode lembrar que eu faço aniversário em maio?
        tem como você lembrar que eu odeio coentro?
        queria que vc lembrasse que eu moro em portugal
        sou alérgica a amendoim, lembra disso
        guarda na memória que minha mãe é enfermeira
        grava isso aí, eu detesto jiló
        anota que eu não posso às terças
        toma nota aí: o chefe da guilda agora é o Beto
        deixa salvo aí que meu tipo sanguíneo é O negativo
        bota na cabeça que eu reprovei em matemática duas vezes
        n esquece q eu moro no japão
        meu aniversário é dia 3 de junho, não esquece!
        jamais esqueça: biscoito, não bolacha
        daqui pra frente pode me chamar de Zé
        me chama de Juba a partir de agora
        tenha em mente que eu tô aprendendo ainda
        sou canhoto, leva isso em conta pfv
        para referência futura, uso ela/dela
        <@123> guarda como regra do servidor: sem política
        remember que meu gato se chama Luna
        LEMBRA QUE EU SOU ALÉRGICA A AMENDOIM!!!
    """,
    "ja": """
        うちの犬の名前はポチだって覚えておいて
        これ覚えといて：Wi-Fiのパスは冷蔵庫
        俺は夜勤だから覚えといてくれ
        覚えてほしいんだけど、私の妹はミカっていうの
        よろしければ私の名前を覚えていただけますか？
        猫を二匹飼ってるって覚えてくれる？
        好きな色は紫、覚えて！
        おぼえておいて！ぼくはピアノがすき
        忘れないでね、来年から留学するんだ
        俺がこの鯖作ったってこと忘れんなよ
        猫アレルギーのこと忘れたら怒るよ
        メモしといて、火曜は参加できない
        メモ：血液型はO型マイナス
        長期記憶に保存して：GPUは4070
        鯖直したのは俺だって記憶に刻め
        頭に入れておいて、まだ初心者なので
        これからはカイって呼んで
        今後は絵文字なしで頼む
        今後の参考に：タイムゾーンは日本時間です
        サーバーのルールとして覚えておいて、政治の話は禁止
        <@456>は私の彼氏だから覚えておいてね
        俺、実は左利き。覚えとき
    """,
}

NOT_REMEMBER = {
    "en-US": """
        do you still remember my dog
        can you remember what i said yesterday?
        what else do you remember about my family?
        remember when we wiped on the first boss lol
        remember that time we got lost in the mall
        remember our first raid? that was chaos
        i cant remember where i put my keys
        she remembered my birthday
        my brother can't even remember my birthday
        does anyone remember that old cartoon with the blue cat
        no need to remember that
        please don't store this anywhere
        dont write that down
        remind me in 20 minutes
        please remind me tomorrow to remember my badge
        remember to buy milk tomorrow
        don't forget your keys
        dont forget to bring snacks tomorrow
        my teacher told me to remember the formula
        the coach yelled remember the plan and we lost
        i'll never forget that day
        never forget 💀
        the song Never Forget is so good
        watching Remember the Titans tonight
        memory foam pillow or normal one?
        how do i store a list in memory in python
        she made a note of it in class
        i'll keep that in mind thanks
        from now on i'm only playing support lol
        forget what i said earlier
        save me some pizza lol
        what's the best build for jinx?
    """,
    "pt-BR": """
        vc lembra de mim?
        lembra quando a gente zerou o jogo?
        lembra que a gente jogava até de manhã? bons tempos
        vc consegue lembrar do que eu falei ontem?
        não lembro onde deixei a chave
        alguém lembra o nome daquele filme?
        me lembra daqui a 20 minutos
        isso me lembra minha infância
        não esquece de levar o guarda-chuva amanhã
        não precisa lembrar disso
        não guarda isso não, é segredo
        nunca vou esquecer aquele dia
        minha mãe sempre fala lembra de agasalhar
        ela anotou meu número errado
        o guarda me parou na rua
        salve galera, tudo certo?
        como que salva na memória do celular?
        será que ele lembra do combinado?
        esquece o que eu falei
        guarda um pedaço de pizza pra mim
        a música Lembra de Mim é linda
        daqui pra frente vou jogar só de suporte
        qual a melhor build de jinx?
    """,
    "ja": """
        私の名前覚えてる？
        全然覚えてない
        あの頃のこと覚えてるなあ
        これは覚えなくて大丈夫
        保存しないで
        明日お菓子持ってくるの忘れないでね
        20分後に教えて
        先生に公式を覚えておけって言われた
        あの日のことは一生忘れない
        鍵忘れた
        単語を覚えるのが苦手
        見覚えのある顔だ
        覚えていてくれてありがとう
        覚えといて損はないよ
        覚えておきます
        レシピをメモした
        メモリ何GB必要？
        チャンネル登録してね
        これからサポートだけやるわ
        これからもよろしくお願いします
        ジンクスのおすすめビルド教えて
    """,
}

FORGET = {
    "en-US": """
        forget that i live in a van
        could you please forget what I said about my sister
        delete what you saved about my job
        erase my data from your memory
        i want my data deleted from your memory
        stop keeping notes on me
        you don't have to remember my exam anymore, it's over
        unlearn that i like pineapple pizza
        foget that i live in berlin
    """,
    "pt-BR": """
        esquece que eu sou vegano
        pode esquecer meu endereço?
        queria que vc esquecesse meu sobrenome
        apaga o que vc salvou do meu trampo
        limpa a memória sobre a viagem
        pare de salvar meu aniversário
        não precisa mais lembrar que eu sou casado
        desaprende meu apelido
    """,
    "ja": """
        私がベジタリアンだってこと忘れて
        住所忘れてくれる？
        猫についての記憶を消してくれ
        私の情報を全部削除して
        誕生日を保存するのはやめて
        もう学校のことは覚えておかなくていいよ
    """,
}

NOT_FORGET = {
    "en-US": """
        nah forget that, lets play
        dont forget that i am vegan
        i forgot my password
        why did you forget what i told you
        how do i forget my ex
        can you delete my last message
        she told me to forget him
        forget I said anything
        clear the queue
        remember my birthday
    """,
    "pt-BR": """
        esquece
        ah esquece isso, bora jogar
        não esquece meu aniversário
        esqueci minha senha
        como eu ia esquecer
        um mod pode apagar esse post?
        bora esquecer do trabalho e jogar
    """,
    "ja": """
        忘れてた
        俺の名前忘れたの？
        誕生日忘れないでね
        今の忘れてw
        仕事忘れて遊ぼうぜ
        投稿を削除してほしい
        覚えておいて
    """,
}


def lines(texts: dict[str, str]) -> list[str]:
    return [line.strip() for text in texts.values() for line in text.strip().splitlines()]


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_is_recognised(text: str) -> None:
    assert asks_to_remember(text)


@pytest.mark.parametrize("text", lines(NOT_REMEMBER))
def test_what_only_sounds_like_it_is_no_request_to_remember(text: str) -> None:
    assert not asks_to_remember(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_is_recognised(text: str) -> None:
    assert has_forget_intent(text)


@pytest.mark.parametrize("text", lines(NOT_FORGET))
def test_what_only_sounds_like_it_is_no_request_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_is_none_to_remember(text: str) -> None:
    assert not asks_to_remember(text)


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_is_none_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


SMALL_TALK = "the raid was fun, the healer fell asleep and we laughed a lot"


@pytest.mark.parametrize(
    "text", ["remember I'm vegan", "lembra que sou vegana", "猫派だって覚えておいて"]
)
@pytest.mark.parametrize("around", ["{0}. {1}. {0}?", "{0}\n{1}\n{0}", "{0}!! {1}. {0}"])
def test_a_request_is_found_inside_a_longer_message(around: str, text: str) -> None:
    assert asks_to_remember(around.format(SMALL_TALK, text))


REQUEST = "please remember that i am vegan"


@pytest.mark.parametrize(
    "text",
    [
        f"`{REQUEST}` does nothing",
        f"``{REQUEST}`` does nothing",
        f"```\n{REQUEST}\n```",
        f"```py\n{REQUEST}",
        f"> {REQUEST}\nwho wrote this",
        f">>> so he wrote\n{REQUEST}",
        f'"{REQUEST}" is what he said',
        f"“{REQUEST}” is what he said",
        f"„{REQUEST}“ hat er gesagt",
        f"« {REQUEST} » ok",
        f"he said '{REQUEST}' again",
        f"「{REQUEST}」って言ってた",
        f"『{REQUEST}』って曲",
        f"~~{REQUEST}~~",
        "https://example.org/please-remember-that-i-am-vegan",
    ],
)
def test_code_quotations_and_links_are_not_the_authors_request(text: str) -> None:
    assert not asks_to_remember(text)


@pytest.mark.parametrize(
    "text",
    [
        f"> what shall i cook?\n{REQUEST}",
        f"`x = 1` and {REQUEST}",
        f"it's late, don't you think? {REQUEST}",
        "remember: “the cake is a lie” is our motto",
        "remember <#42> is for memes only",
        "remember https://example.org is my page",
        "**Remember** that i am _vegan_",
        "ＰＬＥＡＳＥ　ｒｅｍｅｍｂｅｒ　that i am vegan",
        "don’t forget that i am vegan",
        "DON'T FORGET THAT I AM VEGAN",
        "não esqueça que sou vegana",
        "NAO ESQUECA QUE SOU VEGANA",
        "na\u0303o esquec\u0327a que sou vegana",
        "please\n\n   remember   that i am vegan",
        "覚えておいて🙏",
    ],
)
def test_the_authors_own_words_count_however_they_are_written(text: str) -> None:
    assert asks_to_remember(text)


def with_one_letter_missing(word: str) -> list[str]:
    return [word[:at] + word[at + 1 :] for at in range(len(word))]


def with_two_letters_swapped(word: str) -> list[str]:
    pairs = range(len(word) - 1)
    swapped = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in pairs]
    return [other for other in swapped if other != word]


@pytest.mark.parametrize(
    "word", with_one_letter_missing("remember") + with_two_letters_swapped("remember")
)
def test_one_typing_error_in_a_long_verb_is_forgiven(word: str) -> None:
    assert asks_to_remember(f"please {word} that i am vegan")


@pytest.mark.parametrize("word", with_two_letters_swapped("forget"))
def test_two_letters_swapped_in_a_verb_of_six_letters_are_forgiven(word: str) -> None:
    assert asks_to_remember(f"dont {word} that i am vegan")


@pytest.mark.parametrize("word", ["remembers", "remebmre", "svae", "nte"])
def test_other_words_two_errors_and_short_verbs_are_not_forgiven(word: str) -> None:
    assert not asks_to_remember(f"please {word} that i am vegan")


@given(st.text(max_size=300))
def test_any_text_is_judged_and_always_alike(text: str) -> None:
    assert asks_to_remember(text) is asks_to_remember(text)
    assert has_forget_intent(text) is has_forget_intent(text)


@pytest.mark.parametrize("gate", [asks_to_remember, has_forget_intent])
@pytest.mark.parametrize("end", ["", REQUEST, "猫派だって覚えておいて"])
def test_two_thousand_characters_take_less_than_half_a_millisecond(
    gate: Callable[[str], bool], end: str
) -> None:
    load_intent_packs()
    text = (f"{SMALL_TALK}. " * 40)[: 2_000 - len(end)] + end
    taken = []
    for _ in range(50):
        begin = time.perf_counter()
        gate(text)
        taken.append(time.perf_counter() - begin)
    assert min(taken) < 0.0005


def test_the_three_first_locales_have_both_packs() -> None:
    for intent in ("remember", "forget"):
        packs = {pack.locale for pack in load_packs(catalogue(), intent)}
        assert {"en-US", "pt-BR", "ja"} <= packs


PACK = """
[intents.remember]
ask = ["^ {verbs} that"]
ignore = ["i {verbs}"]
[intents.remember.anchors]
verbs = ["keep"]
"""


def packs_of(tmp_path: Path, toml: str) -> tuple[Pack, ...]:
    (tmp_path / "en-US.toml").write_text(toml, "utf-8")
    return load_packs(Catalogue.load(tmp_path), "remember")


def test_a_sound_pack_is_loaded(tmp_path: Path) -> None:
    (pack,) = packs_of(tmp_path, PACK)
    assert pack.asks(["keep", "that"])
    assert not pack.asks(["i", "keep", "that"])


@pytest.mark.parametrize(
    ("found", "put", "problem"),
    [
        ('["keep"]', '["keep", " "]', "a phrase is empty"),
        ('["keep"]', '["keep", "KEEP"]', "twice"),
        ('["keep"]', '["keep"]\nmore = ["keep"]', "twice"),
        ('["keep"]', '["覚"]', "too short"),
        ('ask = ["^ {verbs} that"]', "", "the list ask is missing"),
        ('ignore = ["i {verbs}"]', "", "the list ignore is missing"),
        ("^ {verbs} that", "keep that", "names no list of anchors"),
        ("^ {verbs} that", "{verbs} {nobody}", "no list is named 'nobody'"),
        ("^ {verbs} that", "{verbs} (that", "not closed"),
        ("^ {verbs} that", "{verbs} that)", "bracket too many"),
        ("^ {verbs} that", "{verbs} tha't", "cannot be read"),
        ("verbs = [", 'loop = ["{loop}"]\nverbs = ["a {loop}", ', "names itself"),
    ],
)
def test_a_faulty_pack_is_refused_by_name(
    tmp_path: Path, found: str, put: str, problem: str
) -> None:
    assert PACK.count(found) == 1
    with pytest.raises(ValueError, match=rf"en-US, intents\.remember: .*{problem}"):
        packs_of(tmp_path, PACK.replace(found, put))


@pytest.mark.parametrize(
    ("pattern", "sentence", "matches"),
    [
        ("{verbs} (this|that)", "keep that", True),
        ("{verbs} (this|that)", "keep those", False),
        ("{verbs} (please|) that", "keep that", True),
        ("{verbs} (please|) that", "keep please that", True),
        ("{verbs} * that", "keep all that", True),
        ("{verbs} * that", "keep that", False),
        ("{verbs} ... that", "keep a b c d e f g h i j k l that", True),
        ("{verbs} ... that", "keep a b c d e f g h i j k l m that", False),
        ("{verbs} #", "keep 12", True),
        ("{verbs} #", "keep twelve", False),
        ("^ {verbs}", "well , keep", True),
        ("^ {verbs}", "well keep", False),
        ("< {verbs}", "keep", True),
        ("< {verbs}", "well , keep", False),
        ("{verbs} $", "keep , well", True),
        ("{verbs} $", "keep well", False),
        ("{verbs} >", "well keep", True),
        ("{verbs} >", "keep , well", False),
        ("{verbs} :", "keep : it", True),
        ("{verbs} ?", "keep ?", True),
        ("{verbs} @", "keep @", True),
        ("{verbs} that", "keep , that", True),
    ],
)
def test_a_pattern_matches_what_its_signs_say(
    tmp_path: Path, pattern: str, sentence: str, *, matches: bool
) -> None:
    (pack,) = packs_of(tmp_path, PACK.replace("^ {verbs} that", pattern))
    assert pack.asks(sentence.split()) is matches


def test_what_is_ruled_out_takes_its_words_with_it_and_joins_nothing(tmp_path: Path) -> None:
    (pack,) = packs_of(tmp_path, PACK.replace("^ {verbs} that", "{verbs} ... that"))
    assert not pack.asks(["keep", "i", "keep", "that"])
    assert pack.asks(["i", "keep", "this", "keep", "that"])
