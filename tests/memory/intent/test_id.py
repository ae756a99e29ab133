import pytest

from bot.memory.intent import has_explicit_long_term_memory_intent, has_forget_intent

REMEMBER = """
    inget ya, aku alergi kacang
    inget baik-baik ya bot, gw kidal
    kamu harus inget kalo aku masih SMA
    aku mau kamu inget kalo aku udah pindah ke jogja
    jgn lupa klo gw ini admin server
    gaboleh lupa ya gw ultah 3 juli
    tolong catat kalo aku sekarang pake iphone
    tulis di catatanmu kalo aku penyuka warna ungu
    simpan di memori jangka panjang: saya punya diabetes
    save permanen dong: pacar gw namanya Dinda
    mulai sekarang panggil gw bos
    kedepannya panggil aku Caca aja ya
    perhatiin ya, gw masih 14 tahun jadi jangan ngomong kasar
    buat referensi ke depan, aku pake kacamata minus 5
    hafalin nama kucing-kucingku ya: Momo, Kiko, Bubu
    aku alergi seafood, inget ya
    ultahku 17 agustus, inget baik2 ya
    catat buat server ini: turnamen diundur ke agustus
    tolong ingta namaku Farhan
    eh inget ya, gw non-binary
    ingatlah selalu, saya tidak suka dipanggil pak
    pls catet, gw pindah zona waktu jadi WIT
    inget ya bot kucing gw namanya Cimol
    kamu inget ya aku ga suka pedes
    simpan baik-baik ya: tanggal jadian kita 14 februari
    jgn lupa aku lahir tahun 2001
    mulai saat ini tolong panggil saya dengan nama Nisa
    saya harap Anda selalu mengingat bahwa saya bekerja malam hari
    harap diperhatikan, saya pengguna kursi roda
    <@456> itu adek gw, tolong inget
    inget2 ya gw takut gelap
    catat di memori: jadwal live gue tiap minggu
    tolong jangan lupa kalau anakku alergi susu
    tolong masukkan ke catatanmu: saya alumni UGM
"""

NOT_REMEMBER = """
    masih inget aku kan?
    bot bisa inget berapa pesan sih
    gue lupa mulu naro kunci
    inget dulu jajan seribu dapet banyak
    jangan simpan dataku ya
    tolong ingetin buat minum obat nanti malem
    jangan lupa subscribe
    guruku nyuruh hafalin perkalian
    ram laptop berapa yang bagus
    nyatet pelajaran itu bikin ngantuk
    panggil ambulans woy
    pengingat alarm gw rusak
    makasih udah inget ultahku
    kalau ga salah inget dia dari bogor
    tugasnya dikumpul kapan sih
    aku mau catat pengeluaran bulan ini
    kamu inget ulang tahunku kapan?
    inget umur woi
    tolong ingetin meeting jam 3
    jgn lupa senyum :)
    ga perlu simpan info ini
    catatan rapat ada dimana ya
    tulis nama kalian di list ya
    panggil admin dong
    aku udah lupa
    camilan apa yang enak
    jangan lupa ambil paket
    gue simpen rahasia ini sampe mati
    tolong ingatkan saya minum vitamin
    panggilan darurat nomor berapa
"""

FORGET = """
    lupakan kalau aku vegetarian, sekarang aku makan daging
    tolong lupakan apa yang aku bilang soal kerjaan
    hapus semua data tentang aku
    jangan inget lagi soal ultahku
    stop nyatet tentang aku
    buang dari ingatanmu kalo gw pernah kerja di sana
    anggap aja aku ga pernah cerita soal itu
    lupakan bahwa saya tinggal di Bandung
    bersihin memorimu soal pekerjaanku
    lupain kalo gw pernah kerja di bank
    ga usah simpan data gw lagi
    bisa hapus catatan tentang kerjaanku ga
"""

NOT_FORGET = """
    kamu lupa namaku ya?
    lupain aja, ayo main
    aku mau lupain dia tapi susah
    hapus aplikasi yang ga kepake
    dia bilang lupakan aku
    penghapus gw ilang
    ga usah dipikirin, lupakan
    hapus channel ini min
    jangan hapus memorimu tentang aku ya
    kok kamu lupa sih
    hapus dong pesan barusan
    jangan lupain aku ya
"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_indonesian_is_recognised(text: str) -> None:
    assert has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(NOT_REMEMBER))
def test_what_only_sounds_like_it_in_indonesian_is_no_request_to_remember(text: str) -> None:
    assert not has_explicit_long_term_memory_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_indonesian_is_recognised(text: str) -> None:
    assert has_forget_intent(text)


@pytest.mark.parametrize("text", lines(NOT_FORGET))
def test_what_only_sounds_like_it_in_indonesian_is_no_request_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(REMEMBER))
def test_a_request_to_remember_in_indonesian_is_none_to_forget(text: str) -> None:
    assert not has_forget_intent(text)


@pytest.mark.parametrize("text", lines(FORGET))
def test_a_request_to_forget_in_indonesian_is_none_to_remember(text: str) -> None:
    assert not has_explicit_long_term_memory_intent(text)
