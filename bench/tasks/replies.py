"""What a reply says in the end: models that think aloud write down other answers before their own."""

OPENED, CLOSED = "<think>", "</think>"


def final(reply: str) -> str:
    """What follows the reasoning, which some models write before `</think>`; nothing where it never ends."""
    _, closed, said = reply.rpartition(CLOSED)
    if closed:
        return said.strip()
    return "" if OPENED in reply else reply
