"""Small files of McBE."""

import pandas as pd


def write(path, *rows, encoding="utf-8"):
    """Write `rows` to `path`, as CSV or xlsx, and return its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(list(rows))
    if path.suffix == ".xlsx":
        table.to_excel(path, index=False)
    else:
        table.to_csv(path, index=False, encoding=encoding, lineterminator="\r\n")  # quotes both
    return path.parent
