import pytest

from bot.memory.intent import has_explicit_long_term_memory_intent, has_forget_intent

REMEMBER = """
    从现在起喊我女王大人
    我刚才说的你都记一下
    记住哦我男朋友叫阿杰
    不许忘，我最爱的是草莓味
    今后称呼我为陈老师
    群规第三条改了，不许发链接，记一下哈bot
    你能不能记住我不喜欢被叫小姐姐
    写到你的数据库里，我们公会会长是青青
    录入一下：我的职业是护士
    收进你的记忆库：我奶奶叫桂花
    把这条记下来：管理员是小北
    希望你能把我喜欢猫这件事记在心里
    在你的记忆里加一条：我是色盲
    给我备注成狼人杀大神
    求记住，我真名叫何夕
    我的mbti变了，现在是enfp，更新下你的记忆呗
    我要你永远记住，皇马才是冠军
    请知悉：我的代词是他
    做个备忘，我养的龟叫闪电
    能记一下我的主玩是辅助位吗
    给你留个参考，以后聊天用：我在读研二
    麻烦把我的饮食禁忌存一下：不吃虾
    千万别忘记，我的生日是闰年2月29
    千万不能忘我是色弱
    记住，我是左撇子
    好的谢谢你的菜谱！顺便记一下我家没有烤箱
    remember一下我是vegan
    昨天加班到凌晨，累死。今天又被老板骂。唉，反正就这样吧，你记住我在互联网公司上班就行
    麻烦记住我的时区是东京
    你脑子里给我存好，我是处女座
    帮我记住 <@456> 是我师父
    我需要你帮我记住密码提示是初恋的名字
    今天认识你很高兴，我叫大鹏，记得我名字哦
    以后改口叫我沈总
"""

NOT_REMEMBER = """
    有没有什么办法能记住梦
    小时候背古诗背得最牢的就是那首
    你记住了什么
    刚背完单词又忘光了
    这个你不用记
    不用记了
    他连我的生日都没记住
    我没记住你叫啥
    他以后叫我姐姐
    我爸永远记不住我生日
    以后叫外卖别叫这家了
    提醒我周五交房租
    你觉得我会忘记吗
    难忘的一天
    笔记本推荐一下，预算五千
    这首《别忘了我》好老
    从现在开始每天学英语
    有没有人一起开黑
    我叫什么你记得吗
    人工智能会不会把我说的都记下来啊
    之后再联系
    这破软件老是记不住我的登录状态
    老师让背下来的那篇课文太长了
    记得那时年纪小，你爱谈天我爱笑
    怎么记单词最快
    妈妈让我记住回家的路
    别记下来啊我随便说的
    别忘了周五的会
    你记得住吗
    存档坏了怎么办
"""

FORGET = """
    不用再记着我在考研了，考完了
    停止记录我的信息
    不要再记我的作息了
    你能忘掉我的生日吗
    我改名了，之前那个名字你忘掉
    请把有关我家人的内容全部抹去
    清除你对我的记忆
    把我以前住哪的记录删了
    那个我喜欢他的事你就忘了吧
    把关于我的记忆全清空
    求求你忘了我说过的糗事
    我希望你忘记我说过的关于我爸的话
    就当我从没说过我的地址
    帮我忘掉我住在武汉这件事
"""

NOT_FORGET = """
    来打游戏忘掉烦恼
    取消我的报名
    忘不了
    把这个表情包删了
    我忘记密码了
    算了忘了吧
    忘记是什么时候加的群了
    把垃圾文件删除
    管理员能删一下广告吗
    不会忘记你的
    忘记背后努力面前
    删库跑路
    我把游戏删了
    删除好友怎么弄
"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_simplified_chinese_is_recognised(text: str) -> None:
    assert has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(NOT_REMEMBER))
def test_what_only_sounds_like_it_in_simplified_chinese_is_no_request_to_remember(
    text: str,
) -> None:
    assert not has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_simplified_chinese_is_recognised(text: str) -> None:
    assert has_forget_intent(text)


@pytest.mark.parametrize("text", lines(NOT_FORGET))
def test_what_only_sounds_like_it_in_simplified_chinese_is_no_request_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_simplified_chinese_is_none_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_simplified_chinese_is_none_to_remember(text: str) -> None:
    assert not has_explicit_long_term_memory_intent(text)
