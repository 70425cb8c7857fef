"""OAuth authorization server and an MCP server that needs its tokens, strict where RFCs are.

Both are one aiohttp application, at `base`. Opening `/authorize` grants access at once.
"""

import base64
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

ISSUER_PATH = "/tenant"
MCP_PATH = "/mcp"


@dataclass
class Code:
    client_id: str
    redirect: str
    challenge: str
    resource: str
    scope: str
    family: str = ""  # once it is redeemed


@dataclass
class Ways:
    """Deviations of the authorization server from a correct one."""

    registers: bool = True
    knows_documents: bool = False
    names_itself: bool = True
    iss: str | None = None  # None: its own
    methods: tuple[str, ...] = ("S256",)
    issuer: str | None = None  # None: its own
    resource: str | None = None  # None: its own
    says_where: bool = True  # in WWW-Authenticate
    expires_in_s: int | None = 3600
    rotates: bool = True
    gives_refresh: bool = True
    secret_method: str = "none"
    scopes_supported: tuple[str, ...] = ()
    token_answer: tuple[int, bytes] | None = None  # instead of its own
    wants_scope: str = ""  # more than any login has
    refuses_all: bool = False
    echoes: bool = False
    missing: tuple[str, ...] = ()  # paths
    issuer_at: str = ""  # a path at which its metadata is, too
    register_answer: tuple[int, bytes] | None = None
    documents: dict[str, str] = field(default_factory=dict)  # by path, instead of its own


@dataclass
class AuthorizationServer:
    base: str = ""
    mcp_base: str = ""  # of the server that requires the tokens, if it is another host
    ways: Ways = field(default_factory=Ways)
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, Code] = field(default_factory=dict)
    family_by_refresh: dict[str, str] = field(default_factory=dict)
    used_refresh: set[str] = field(default_factory=set)
    family_by_access: dict[str, str] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)
    resource_by_family: dict[str, str] = field(default_factory=dict)
    forms: list[dict[str, str]] = field(default_factory=list)  # requests to /token and /revoke
    asked: list[dict[str, str]] = field(default_factory=list)  # requests to /authorize
    seen_tokens: list[str] = field(default_factory=list)  # requests to the MCP server
    verifiers: list[str] = field(default_factory=list)

    @property
    def issuer(self) -> str:
        return self.base + ISSUER_PATH

    @property
    def mcp_url(self) -> str:
        return (self.mcp_base or self.base) + MCP_PATH

    def grants(self, kind: str) -> list[dict[str, str]]:
        return [form for form in self.forms if form.get("grant_type") == kind]

    def all_tokens(self) -> set[str]:
        return {*self.family_by_refresh, *self.family_by_access}

    def end_access(self) -> None:
        """Expire every access token, as if its time had passed; refresh tokens stay valid."""
        self.family_by_access.clear()

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.take)
        return app

    async def take(self, request: web.Request) -> web.Response:
        path = request.path
        if path == self.ways.issuer_at:
            return await self.describe(request)
        handle = self.by_path().get(path)
        if handle is None or path in self.ways.missing:
            return web.Response(status=404)
        return await handle(request)

    def by_path(self) -> dict[str, Callable[[web.Request], Awaitable[web.Response]]]:
        return {
            f"/.well-known/oauth-protected-resource{MCP_PATH}": self.describe_resource,
            f"/.well-known/oauth-authorization-server{ISSUER_PATH}": self.describe,
            "/register": self.register,
            "/authorize": self.authorize,
            "/token": self.token,
            "/revoke": self.revoke,
            MCP_PATH: self.mcp,
        }

    # ------------------------------------------------------------------------- metadata
    async def describe_resource(self, request: web.Request) -> web.Response:
        return self._document(request) or web.json_response({
            "resource": self.ways.resource or self.mcp_url,
            "authorization_servers": [self.issuer],
            "scopes_supported": ["tools:read"],
        })  # fmt: skip

    async def describe(self, request: web.Request) -> web.Response:
        found: dict[str, Any] = {
            "issuer": self.ways.issuer or self.issuer,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "revocation_endpoint": f"{self.base}/revoke",
            "code_challenge_methods_supported": self.ways.methods,
            "authorization_response_iss_parameter_supported": self.ways.names_itself,
            "client_id_metadata_document_supported": self.ways.knows_documents,
            "scopes_supported": self.ways.scopes_supported,
        }
        if self.ways.registers:
            found["registration_endpoint"] = f"{self.base}/register"
        return self._document(request) or web.json_response(found)

    def _document(self, request: web.Request) -> web.Response | None:
        text = self.ways.documents.get(request.path)
        return None if text is None else web.Response(text=text)

    # --------------------------------------------------------------------- registration
    async def register(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        if self.ways.register_answer:
            status, text = self.ways.register_answer
            return web.Response(status=status, body=text)
        client = {
            **wanted,
            "client_id": f"client-{secrets.token_hex(4)}",
            "token_endpoint_auth_method": self.ways.secret_method,
        }
        if self.ways.secret_method != "none":
            client["client_secret"] = secrets.token_urlsafe(24)
        self.clients[client["client_id"]] = client
        return web.json_response(client, status=201)

    # ----------------------------------------------------------------------- in a browser
    async def authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        self.asked.append(asked)
        client = self.clients.get(asked["client_id"])
        if client is None or asked["redirect_uri"] not in client["redirect_uris"]:
            return web.Response(status=400, text="an unknown client, or another redirect")
        answer = {"state": asked["state"]}
        if self.ways.names_itself or self.ways.iss is not None:
            answer["iss"] = self.ways.iss or self.ways.issuer or self.issuer
        if asked.get("code_challenge_method") != "S256" or asked["response_type"] != "code":
            answer["error"] = "invalid_request"
        else:
            answer["code"] = secrets.token_urlsafe(24)
            self.codes[answer["code"]] = Code(
                asked["client_id"],
                asked["redirect_uri"],
                asked["code_challenge"],
                asked["resource"],
                asked.get("scope", ""),
            )
        return web.Response(
            status=302, headers={"Location": f"{asked['redirect_uri']}?{urlencode(answer)}"}
        )

    # ----------------------------------------------------------------------------- tokens
    async def token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.forms.append(form)
        if self.ways.token_answer:
            status, text = self.ways.token_answer
            return web.Response(status=status, body=text, content_type="application/json")
        if not self._is_client(request, form):
            return _error("invalid_client", 401)
        if form["grant_type"] == "refresh_token":
            return self._refresh(form)
        return self._redeem(form)

    def _is_client(self, request: web.Request, form: dict[str, str]) -> bool:
        client = self.clients.get(form.get("client_id", ""))
        if client is None:
            return False
        method, secret = client.get("token_endpoint_auth_method", "none"), ""
        if method == "client_secret_basic":
            said = request.headers.get("Authorization", "").removeprefix("Basic ")
            secret = base64.b64decode(said).decode().partition(":")[2]
        elif method == "client_secret_post":
            secret = form.get("client_secret", "")
        return bool(secret == client.get("client_secret", ""))

    def _redeem(self, form: dict[str, str]) -> web.Response:
        code = self.codes.get(form.get("code", ""))
        self.verifiers.append(form.get("code_verifier", ""))
        if code is None:
            return _error("invalid_grant")
        if code.family:  # OAuth 2.1 section 4.1.3: the tokens that it issued are revoked
            self.revoked.add(code.family)
            return _error("invalid_grant")
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        was = (code.client_id, code.redirect, code.resource, code.challenge)
        is_ = (form["client_id"], form["redirect_uri"], form.get("resource", ""), challenge)
        if was != is_:
            return _error("invalid_grant")
        code.family = secrets.token_hex(4)
        self.resource_by_family[code.family] = code.resource
        return self._grant(code.family, code.scope)

    def _refresh(self, form: dict[str, str]) -> web.Response:
        token = form.get("refresh_token", "")
        family = self.family_by_refresh.get(token)
        if family is None or family in self.revoked:
            return _error("invalid_grant")
        if token in self.used_refresh:  # OAuth 2.1 section 4.3.1: the refresh token is stolen
            self.revoked.add(family)
            return _error("invalid_grant")
        if self.ways.rotates:
            self.used_refresh.add(token)
        return self._grant(family, None)

    def _grant(self, family: str, scope: str | None) -> web.Response:
        access = f"access-{secrets.token_urlsafe(24)}"
        self.family_by_access[access] = family
        answer: dict[str, Any] = {"access_token": access, "token_type": "Bearer"}
        if self.ways.expires_in_s is not None:
            answer["expires_in"] = self.ways.expires_in_s
        if scope is not None:
            answer["scope"] = scope
        if self.ways.gives_refresh and (scope is not None or self.ways.rotates):
            answer["refresh_token"] = f"refresh-{secrets.token_urlsafe(24)}"
            self.family_by_refresh[answer["refresh_token"]] = family
        return web.json_response(answer)

    async def revoke(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.forms.append(form)
        if not self._is_client(request, form):
            return _error("invalid_client", 401)
        token = form["token"]
        family = self.family_by_refresh.get(token) or self.family_by_access.get(token)
        if family:
            self.revoked.add(family)
        return web.Response()

    # ------------------------------------------------------------------------- the server
    async def mcp(self, request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.seen_tokens.append(token)
        family = self.family_by_access.get(token)
        is_good = family is not None and family not in self.revoked
        is_good = is_good and not self.ways.refuses_all
        if is_good and self.resource_by_family[family or ""] == (
            self.ways.resource or self.mcp_url
        ):
            return await self._answer(request)
        where = f"{self.mcp_base or self.base}/.well-known/oauth-protected-resource{MCP_PATH}"
        said = 'Bearer error="invalid_token", scope="tools:read tools:write"'
        if self.ways.says_where:
            said += f', resource_metadata="{where}"'
        return web.Response(status=401, headers={"WWW-Authenticate": said})

    async def _answer(self, request: web.Request) -> web.Response:
        if scope := self.ways.wants_scope:
            said = f'Bearer error="insufficient_scope", scope="{scope}"'
            return web.Response(status=403, headers={"WWW-Authenticate": said})
        if request.method != "POST":  # there is no stream, and no session
            return web.Response(status=405)
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        result: dict[str, Any] = {}
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "far", "version": "1"}
        elif message["method"] == "tools/list":
            result = {"tools": [{"name": "say", "inputSchema": {"type": "object"}}]}
        elif message["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": "from afar"}]}
        if self.ways.echoes:
            result["said"] = request.headers["Authorization"]
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})


def _error(code: str, status: int = 400) -> web.Response:
    return web.json_response({"error": code}, status=status)
