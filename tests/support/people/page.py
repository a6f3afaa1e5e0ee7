"""A page in a browser: it keeps cookies, and its half of the session."""

import httpx2

from backburner.api.http.auth import SESSION_HEADER


class Page(httpx2.AsyncClient):
    async def send(self, request: httpx2.Request, **more: object) -> httpx2.Response:
        response = await super().send(request, **more)  # type: ignore[arg-type]
        if "set-cookie" in response.headers and response.status_code in (200, 201):
            await response.aread()
            self.headers[SESSION_HEADER] = response.json()["key"]
        return response
