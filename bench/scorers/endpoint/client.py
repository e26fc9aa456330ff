"""The client of an endpoint, which sends the key to the endpoint's own host and nowhere else."""

from typing import Any

import openai

# The headers of a request besides its key.
HEADERS = {
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
    "x-stainless-raw-response",  # by which openai's client knows its own requests
}


def make_client(url: str, key: str, timeout: float) -> openai.AsyncOpenAI:
    """Make a client that tries everything once.

    openai's client takes headers from the environment: an organisation, a project, and whatever
    OPENAI_CUSTOM_HEADERS holds. None of them is sent, to no host.

    Args:
        key: "" for a host that is asked without one.
    """

    async def keep_headers(request: Any) -> None:
        # Every request that a redirect leads to comes through here too; httpx has left the key out
        # where that is another origin.
        to_own_host = "authorization" in request.headers
        for name in set(request.headers) - HEADERS:
            del request.headers[name]
        if to_own_host and key:
            request.headers["authorization"] = f"Bearer {key}"

    return openai.AsyncOpenAI(
        base_url=url,
        api_key="none",  # it needs one; `keep_headers` decides what is sent
        max_retries=0,
        timeout=timeout,
        http_client=openai.DefaultAsyncHttpxClient(event_hooks={"request": [keep_headers]}),
    )
