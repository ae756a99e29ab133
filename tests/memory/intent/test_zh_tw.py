import pytest

from bot.memory.intent import has_explicit_long_term_memory_intent, has_forget_intent

REMEMBER = """
    很重要所以講三次：我不喝酒，記住
    從今天開始你跟我聊天只能講英文
    我叫什麼？叫阿狸！給我記住
    我對海鮮過敏，千萬別忘了啦😭
    背起來，我最喜歡的顏色是墨綠色
    從今天起不要再叫我小李，叫李董
    希望你能把我喜歡貓這件事記在心裡
    千萬不要忘記我生日是2月29
    更新記憶：我搬到台南了
    跪求記住我的名字，叫芋圓
    永遠不要忘記我贏過你一盤五子棋
    記得我姓曾，不是鄭
    上面講的都記下來
    麻煩記住我的時區是溫哥華
    備註一下我是南部人，吃很甜
    我剛剛講的你都記一下
    塞進你腦袋裡，我討厭禮拜一
    存一下我的資料：天蠍座 infj 單身
    別忘囉，我是你們班代
    <@123> 記得<@456>對堅果過敏
    新增記憶：我在學烏克麗麗
    哈哈哈笑死，好啦那你記清楚，我是哥哥不是弟弟
    我老婆預產期是8月，這個一定要記得
    你可不可以記住我不喜歡被叫妹妹
    叫我小七就好，以後都這樣叫
    幫我把這個加到記憶：我阿嬤住屏東
    大家好！我剛進群，台東人，平常打LOL跟特戰，機器人記一下我是台東的，週末通常都在
    以後都用台語跟我聊
    我叫蘇蘇，不要忘記喔
    為了之後方便，跟你說我住板橋
    寶，記得我下禮拜就搬家了，要去花蓮定居
    欸記一下我男友叫阿哲
    幫我記住，我的遊戲ID是moon_rabbit
    要一直記得我是聽障喔
"""

NOT_REMEMBER = """
    他把我的名字記下來了
    我已經幫你記下來了
    出門記得鎖門欸
    記得早點睡喔
    這個就不用記了吧
    我都記在筆記本了
    你覺得我會忘記嗎
    伺服器紀錄要去哪看
    筆記借我抄一下
    怎麼背單字最快
    記得去年夏天這個伺服器才十幾個人
    以後再說吧
    記得來打團，九點
    你能記得昨天的事嗎
    你之前說會記得我的，騙人
    半小時後提醒我喝水
    我會記住的
    以後有空一起玩
    存一下這張圖
    老師說要記住這個公式
    我才剛記住你名字就忘了
    我的記性越來越差
    誰可以幫忙記錄一下今天的掉寶
    記得我小時候最愛看卡通
    我爸永遠記不得我生日
    我叫什麼你記得嗎
    剛背完單字又忘光了
    我忘了
    我記得這裡以前是書局
    AI會不會把我說的都記下來啊
"""

FORGET = """
    把關於我的記憶全部清空
    停止記錄我的資訊
    那個我喜歡他的事你就忘了吧
    把記憶3刪掉
    把我以前住哪的紀錄刪掉
    不要再記我的作息了
    我不想要你再記得我的病史
    不用再記我在考研究所了，考完了
    你記的那條說我有男友的，刪掉吧
    我改名了，之前那個名字你忘掉
    把我給你的手機號碼刪掉
    清除你對我的記憶
    把我的資料都刪了吧
    你之前記的我的體重刪掉吧，不準了
"""

NOT_FORGET = """
    忘記是什麼時候加群的了
    你忘了我嗎
    要怎麼刪好友
    我忘記密碼了
    忘記帶耳機
    來打電動忘掉煩惱
    管理員可以刪一下廣告嗎
    取消我的報名
    有首歌叫忘記你我做不到
    記住我的生日
    不要把我忘了
    忘不了
    我把鑰匙忘在家裡了
    我都快忘記怎麼玩了
"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_traditional_chinese_is_recognised(text: str) -> None:
    assert has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(NOT_REMEMBER))
def test_what_only_sounds_like_it_in_traditional_chinese_is_no_request_to_remember(
    text: str,
) -> None:
    assert not has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_traditional_chinese_is_recognised(text: str) -> None:
    assert has_forget_intent(text)


@pytest.mark.parametrize("text", lines(NOT_FORGET))
def test_what_only_sounds_like_it_in_traditional_chinese_is_no_request_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_traditional_chinese_is_none_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_traditional_chinese_is_none_to_remember(text: str) -> None:
    assert not has_explicit_long_term_memory_intent(text)
