import pytest

from bot.memory.intent import has_explicit_long_term_memory_intent, has_forget_intent

REMEMBER = """
    nhớ giùm mình là mình dị ứng hải sản nha
    Xin hãy ghi nhớ rằng tôi không uống được rượu.
    đừng quên nha bot, main của tui là Ahri
    mãi mãi đừng quên điều này: bánh mì phải có pate
    ghi chú lại giúp mình: mình không ăn hành
    lưu vĩnh viễn cái này: email phụ của mình là bống mail
    thêm vào bộ nhớ: vợ tôi tên Hạnh
    nhét vào đầu đi, tao không thích bị gọi là em
    từ bây giờ trả lời tui bằng tiếng Việt thôi nhé
    lưu ý giúp mình mình đang cho con bú, đừng nhắc cafe
    để sau này dùng: mình xài win 11
    nhớ hộ mình em gái mình tên Vy được không?
    phiền bạn ghi nhớ giúp: công ty mình tên Sao Mai
    mình tên Trâm, nhớ nha
    t dân Nghệ An, nhớ chưa
    <@123> nhớ là server này cấm bàn chính trị
    dung quen minh la nguoi Hai Phong
    ghi nhớ điều này nha bot: tao ghét thứ hai
    remember giùm mình là mình lactose intolerant nha
    bạn nên nhớ mình không biết bơi đấy
    lưu thông tin của mình nhé: cao 1m7 nặng 60kg
    ê bot, nhớ cái này: tao mới mua ps5
    mày nhớ giùm tao cái này: tao làm ca đêm
    note: mình là nữ nhé
    đừng quên rằng mình đang ăn kiêng nha
    từ nay đừng gọi tao bằng tên thật nữa
    tui bị huyết áp thấp, ghi lại dùm
    thêm vào trí nhớ giùm: tui có con nhỏ 2 tuổi
    dung quen t hoc lop 11 nha
    nhớ hộ mình với, giải đấu dời sang thứ 7
    nhớ giùm cái, tao hết thích anime rồi
    làm ơn đừng bao giờ quên mình bị dị ứng penicillin
    từ nay xưng em với mình nha
    cần bot nhớ giúp là tui không ăn được gluten
"""

NOT_REMEMBER = """
    bot có nhớ mình tên gì không?
    m nhớ hôm qua t nói gì ko
    cách ghi nhớ bảng cửu chương cho trẻ
    khỏi ghi nhớ cũng được, nói chơi thôi
    nhớ bạn quá bot ơi
    nhớ mua sữa tối nay nha mọi người
    đừng quên điểm danh hôm nay nha
    mẹ tao dặn nhớ khóa cửa
    tao quên mất rồi
    laptop 8gb bộ nhớ chạy nổi valorant ko
    lưu ý khi mua laptop cũ là gì mọi người
    note 20 ultra còn ngon không
    tối qua gọi mày mà không bắt máy
    nó nhớ tên hết cả lớp luôn
    tui sẽ ghi nhớ điều đó, cảm ơn
    mình vừa ghi chú trong lớp xong
    nhỏ bạn t nó thích ăn kem lắm
    nhỏ quá không đọc được
    có ai nhớ tên quán hôm trước không
    nhớ ăn sáng nha mọi người
    đừng quên anh nhé
    tôi không nhớ là mình đã nói vậy
    viết code python khó quá
    mình đang ghi chú bài học
    gọi mình dậy lúc 6h nha
    lưu ý: server bảo trì lúc 2h sáng
    đứa nhỏ nhà bên khóc suốt
    bạn có nhớ lần mình đi Sapa
    ghi điểm đẹp quá
    nhớ hôn bạn tui thi tốt
"""

FORGET = """
    quên chuyện mình ăn chay đi nhé, mình ăn mặn lại rồi
    quên hết những gì tao kể về công việc đi
    xoá hết thông tin về mình đi bot
    có thể quên giúp mình chuyện hôm qua mình kể không
    ngừng ghi nhớ về tôi
    mình muốn bạn quên hết mọi thứ về mình
    giả vờ như chưa từng nghe tên cũ của mình nhé
    <@123> quên cái tên cũ của tớ đi
    xóa trí nhớ về chuyến đi Đà Lạt nha
    bạn hãy quên những gì mình vừa kể về gia đình
    khỏi cần nhớ mình học trường nào nữa
    có thể xóa những điều bạn biết về mình không
"""

NOT_FORGET = """
    quên mất mật khẩu rồi
    quên đi, chơi tiếp thôi
    làm sao để quên người yêu cũ
    xóa app facebook rồi
    không bao giờ quên được
    mình quen nhau lâu rồi mà
    mẹ bảo quên nó đi
    bỏ học đi chơi game
    gỡ game ra cho nhẹ máy
    quen bạn lâu rồi mà giờ mới biết
    bỏ tiền vào heo đi
    đừng xóa ký ức của mình nha
"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_vietnamese_is_recognised(text: str) -> None:
    assert has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(NOT_REMEMBER))
def test_what_only_sounds_like_it_in_vietnamese_is_no_request_to_remember(text: str) -> None:
    assert not has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_vietnamese_is_recognised(text: str) -> None:
    assert has_forget_intent(text)


@pytest.mark.parametrize("text", lines(NOT_FORGET))
def test_what_only_sounds_like_it_in_vietnamese_is_no_request_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_vietnamese_is_none_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_vietnamese_is_none_to_remember(text: str) -> None:
    assert not has_explicit_long_term_memory_intent(text)
