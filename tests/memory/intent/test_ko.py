import pytest

from bot.memory.intent import has_explicit_long_term_memory_intent, has_forget_intent

REMEMBER = """
    폰 번호 바꿨어 뒷자리 0837 기억하셈
    메모리에 넣어줄래 우리 할머니 성함은 계화
    알아두셈 나 남자임
    ㅋㅋㅋㅋ 알겠어 그럼 확실히 기억해둬 내가 형이야
    나 매운 거 못 먹으니까 절대 잊으면 안 돼
    앞으로 참고해줘 나 서울 살아
    내 식단 저장해줘 새우 못 먹음
    내가 고양이 좋아한다는 걸 마음에 새겨줘
    앞으로 나 부를 땐 무조건 대장이라고 해
    적어놔 나 삼겹살 빚진 거 철수임
    내 주 포지션 서폿인 거 메모해 줄 수 있어?
    이건 영구적으로 저장해줘: 내 닉은 달토끼
    나 여자라는 거 또 까먹지 마라
    플리즈 기억해 내 이름 감자떡
    내 이름 뭐라고? 아리라고! 기억하라고 좀
    제 이름은 임완이에요. 꼭 기억해 주세요
    와이프 출산 예정일 8월이니까 기억해줘요
    잊어버리지 마 나 부산 살아
    참고로 알아둬 나 결혼했어
    앞으로 날 진 선생님이라고 불러줬으면 해
    기억헤줘 나 파란색 좋아해
    잘 들어 한 번만 말한다 내 이름은 정오렌지다 기억해
    나 토론토 사는거 리멤버해
    내가 방금 한 말 다 기억해
    나 커피 안 마신다는 거 기억해야 해
    노트해둬 나 전라도 사람임
    앞으로는 나한테 존댓말 쓰지 마
    길마 생일도 적어둬 4월 1일
    숙지해주세요 저 대명사는 그예요
    잊지마세요~ 저 고양이 털 알레르기 있어요
    담달에 내 생일인 거 꼭 기억하기!
    혹시 저 해산물 알레르기 있는 거 기억해 주실 수 있을까요?
    잊지 말아줘 내 생일은 2월 29일이야
    영원히 기억하도록 해, 챔피언은 레알이야
"""

NOT_REMEMBER = """
    선생님이 이 공식 외우라고 하심
    앞으로 뭐 하고 싶어?
    걔가 내 이름 적어갔어
    나를 잊지 말아요 이 노래 좋음
    9시 레이드 잊지 말고 와
    이거 저장하지 마
    나 좀 깨워줘
    그때 피방에서 밤새던 거 기억나냐ㅋㅋ
    사람 이름 잘 외우는 법 좀
    그날 비 오던 거 아직도 기억해
    까먹었다
    다들 내일 숙제 제출 잊지 마
    잊지 않을게
    걔가 자기 잊지 말라더라
    나중에 연락할게
    AI가 내가 한 말 다 저장하는 거 아냐?
    앞으로 일찍 자야지
    이 노래 진짜 좋다
    비번 까먹었는데 어떡해
    내가 잊을 것 같아?
    내 이름 기억하고 있어?
    앞으로 시간 되면 같이 놀자
    우리가 한 말 다 기억해?
    메모장에 장보기 목록 적어놨음
    그 여름은 평생 못 잊어
    토요일에 보고서 내는 거 기억하지?
    나 기억하냐
    세이브 파일 날아감
    이건 굳이 기억하지 않아도 됨
    이제부터 매일 영어 공부한다
"""

FORGET = """
    기억 전부 초기화해
    나에 대한 기억 전부 지워
    내 정보 그만 저장해
    데이터베이스에서 내 생일 제거해줘
    방금 말한 연봉은 잊어줘
    내가 예전에 어디 살았는지 기록 지워줘
    제 본명은 잊어주세요
    내 이름 잊어줄 수 있어?
    제발 내 흑역사 잊어주라
    기억 3번 삭제해줘
    예전 닉네임은 기억에서 빼줘
    내가 알려준 폰번호 지워줘
    전남친 얘기는 그만하고 걔에 대한 거 다 지워
    나에 관한 기억 다 삭제해
"""

NOT_FORGET = """
    불필요한 파일 삭제해
    내 생일 잊지 마
    나 파란색 좋아하는 거 잊지 말아줘
    장바구니 비웠어
    게임하면서 다 잊자
    언제 들어왔는지 잊어버렸네
    신청 취소해줘
    저 메시지 지워줘
    어떻게 나를 잊을 수 있어
    전남친 어떻게 잊어
    실수로 세이브 지웠어
    나 까먹은 거 아니지?
    시간이 지나면 다 잊어
    관리자님 광고 좀 지워주세요
"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_korean_is_recognised(text: str) -> None:
    assert has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(NOT_REMEMBER))
def test_what_only_sounds_like_it_in_korean_is_no_request_to_remember(text: str) -> None:
    assert not has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_korean_is_recognised(text: str) -> None:
    assert has_forget_intent(text)


@pytest.mark.parametrize("text", lines(NOT_FORGET))
def test_what_only_sounds_like_it_in_korean_is_no_request_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_korean_is_none_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_korean_is_none_to_remember(text: str) -> None:
    assert not has_explicit_long_term_memory_intent(text)
