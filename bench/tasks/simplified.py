"""Put traditional Chinese characters into simplified forms, so that one word list reads both.

The table holds the characters of the word lists of `choices`, `ratings` and the tasks, in pairs,
the traditional form first. If you add a word with a new character, add its pair.
"""

_PAIRS = (
    "並并 來来 係系 個个 們们 傳传 傷伤 僅仅 儘尽 優优 內内 兩两 別别 則则 卻却 問问 嗎吗"
    " 嚴严 夠够 實实 將将 對对 導导 屬属 帶带 強强 彆别 後后 從从 慮虑 應应 擇择 據据 數数"
    " 斷断 於于 時时 會会 條条 棄弃 構构 標标 歸归 決决 沒没 況况 減减 準准 滿满 為为 無无"
    " 爭争 爲为 當当 盡尽 確确 種种 稱称 穩稳 簽签 籤签 紀纪 約约 級级 細细 終终 結结 給给"
    " 絕绝 綜综 線线 維维 總总 纔才 與与 萬万 薦荐 蘊蕴 處处 號号 裏里 裡里 見见 視视 覺觉"
    " 觀观 訂订 計计 訊讯 記记 設设 許许 註注 證证 評评 詞词 話话 該该 認认 誘诱 誤误 說说"
    " 誰谁 調调 論论 識识 議议 讓让 讚赞 負负 資资 贊赞 較较 這这 過过 達达 適适 選选 還还"
    " 錯错 鐘钟 間间 關关 雖虽 難难 項项 須须 題题 類类 顯显 體体 麼么 點点"
)
_TABLE = {ord(pair[0]): pair[1] for pair in _PAIRS.split()}


def simplified(text: str) -> str:
    """Return a text with simplified characters in place of the traditional ones of the table."""
    return text.translate(_TABLE)
