"""A batch service for tests: it answers a file of requests, line by line."""

import json
from urllib.request import Request, urlopen


def answer(requests, results, behave):
    """Write the results that `behave` gives to the bodies; return how many. None leaves one out."""
    lines = []
    for text in requests.read_text("utf-8").splitlines():
        asked = json.loads(text)
        assert (asked["method"], asked["url"]) == ("POST", "/v1/chat/completions")
        if reply := behave(asked["body"]):
            status, _, body = reply
            response = {"status_code": status, "request_id": "r", "body": body}
            lines.append({"id": "b", "custom_id": asked["custom_id"], "response": response})
    results.parent.mkdir(exist_ok=True)
    results.write_text("".join(json.dumps({**line, "error": None}) + "\n" for line in lines))
    return len(lines)


def ask(url):
    """Return what has a real server answer each body, one after the other."""

    def behave(body):
        sent = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(sent, timeout=300) as response:
            return response.status, {}, json.load(response)

    return behave
