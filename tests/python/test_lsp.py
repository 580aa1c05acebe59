"""The language server as seen by a client that nobody here wrote.

pytest-lsp types every message after the official meta-model and knows what real editors announce
in `initialize`. So this is about the shape of answers, and no breach of the protocol goes by: its
warnings are errors here. What the answers say is tested in Rust.
"""

import asyncio
import os
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client

DATA = Path(__file__).resolve().parent.parent / "data" / "go"
WORKSPACE = DATA / "src" / "demo"
MAIN = WORKSPACE / "main.go"
# From 0. `sink += work.SumSquares(200_000)`, 17.7 % with calls.
HOT = 34

pytestmark = pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning")


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """The server sees nothing of the developer's settings."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME"]:
        monkeypatch.delenv(name, raising=False)


def answering_client() -> LanguageClient:
    """A client that knows the requests which the editors announce, and counts them."""
    client = make_test_lsp_client()
    client.asked = []

    def know(method: str):
        @client.feature(method)
        def answer(*_):
            client.asked.append(method)

    for method in [
        types.WORKSPACE_INLAY_HINT_REFRESH,
        types.WORKSPACE_CODE_LENS_REFRESH,
        types.CLIENT_REGISTER_CAPABILITY,
    ]:
        know(method)
    return client


@pytest_lsp.fixture(
    params=["visual_studio_code", "neovim@v0.10", "neovim@v0.11", "emacs"],
    config=ClientServerConfig(
        server_command=[os.environ["PERFLENS_BIN"], "lsp"], client_factory=answering_client
    ),
)
async def client(request, lsp_client: LanguageClient):
    params = types.InitializeParams(
        capabilities=client_capabilities(request.param),
        workspace_folders=[types.WorkspaceFolder(uri=WORKSPACE.as_uri(), name="demo")],
        initialization_options={
            "source": {"file": str(DATA / "profiles" / "cpu.pb.gz")},
            "workspaceTrusted": True,
        },
    )
    general = params.capabilities.general
    lsp_client.offered = [getattr(name, "value", name) for name in general and general.position_encodings or []]
    lsp_client.server = await lsp_client.initialize_session(params)
    yield
    await lsp_client.shutdown_session()


def document(path: Path = MAIN) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri=path.as_uri())


def position(line: int, character: int = 0) -> types.Position:
    return types.Position(line=line, character=character)


def everything() -> types.Range:
    return types.Range(start=position(0), end=position(10_000))


async def hints(client: LanguageClient) -> dict[int, types.InlayHint]:
    params = types.InlayHintParams(text_document=document(), range=everything())
    found = await client.text_document_inlay_hint_async(params)
    return {hint.position.line: hint for hint in found or []}


async def opened(client: LanguageClient, text: str | None = None) -> dict[int, types.InlayHint]:
    """Opens the file, and waits for its costs."""
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(
            text_document=types.TextDocumentItem(
                uri=MAIN.as_uri(), language_id="go", version=1, text=text or MAIN.read_text()
            )
        )
    )
    for _ in range(2000):
        if found := await hints(client):
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("no costs")


def encoding(client: LanguageClient) -> str:
    name = client.server.capabilities.position_encoding
    return getattr(name, "value", name)


def units(client: LanguageClient, text: str) -> int:
    """Columns of a text in the agreed encoding."""
    name, width = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[encoding(client)]
    return len(text.encode(name)) // width


@pytest.mark.asyncio
async def test_initialize(client: LanguageClient):
    capabilities = client.server.capabilities
    assert encoding(client) == (client.offered[0] if client.offered else "utf-16")
    assert client.server.server_info.name == "perflens"
    assert capabilities.inlay_hint_provider.resolve_provider
    assert capabilities.diagnostic_provider is None
    assert capabilities.experimental["perflens"]["version"] == 1


@pytest.mark.asyncio
async def test_hints(client: LanguageClient):
    found = await opened(client)
    lines = MAIN.read_text().split("\n")
    assert found[HOT].label == "▆ 17.7% 330ms"
    for line, hint in found.items():
        assert hint.position.character == units(client, lines[line])
    resolved = await client.inlay_hint_resolve_async(found[HOT])
    assert resolved.label == found[HOT].label


@pytest.mark.asyncio
async def test_hints_follow_edits_behind_wide_characters(client: LanguageClient):
    await opened(client)
    wide = "// héllo 🔥\n"
    changes = [
        (0, 0, wide),
        # Behind the wide characters of the line that has just come.
        (0, units(client, wide.strip()), " 🔥"),
        (HOT, 0, "// new\n"),
    ]
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            text_document=types.VersionedTextDocumentIdentifier(uri=MAIN.as_uri(), version=2),
            content_changes=[
                types.TextDocumentContentChangePartial(
                    range=types.Range(start=position(line, column), end=position(line, column)), text=text
                )
                for line, column, text in changes
            ],
        )
    )
    found = await hints(client)
    assert found[HOT + 2].label == "▆ 17.7% 330ms"
    assert 0 not in found


@pytest.mark.asyncio
async def test_hover(client: LanguageClient):
    await opened(client)
    hover = await client.text_document_hover_async(
        types.HoverParams(text_document=document(), position=position(HOT, 3))
    )
    assert hover.contents.kind == types.MarkupKind.Markdown
    assert "17.7%" in hover.contents.value
    nothing = await client.text_document_hover_async(
        types.HoverParams(text_document=document(), position=position(0, 0))
    )
    assert nothing is None


@pytest.mark.asyncio
async def test_lenses(client: LanguageClient):
    await opened(client)
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(text_document=document()))
    titles = {lens.range.start.line: lens.command.title for lens in lenses}
    assert titles[29].startswith("function ")
    functions = [lens for lens in lenses if lens.command.title.startswith("function ")]
    assert {lens.command.command for lens in functions} == {"perflens.showActions"}
    # `main` can be profiled.
    assert [lens.command.command for lens in lenses if lens not in functions] == ["perflens.profileTest"]


@pytest.mark.asyncio
async def test_code_actions(client: LanguageClient):
    await opened(client)
    actions = await client.text_document_code_action_async(
        types.CodeActionParams(
            text_document=document(),
            range=types.Range(start=position(HOT), end=position(HOT)),
            context=types.CodeActionContext(diagnostics=[]),
        )
    )
    assert actions
    for action in actions:
        command = action if isinstance(action, types.Command) else action.command
        assert command.command in client.server.capabilities.execute_command_provider.commands


@pytest.mark.asyncio
async def test_call_hierarchy(client: LanguageClient):
    await opened(client)
    [item] = await client.text_document_prepare_call_hierarchy_async(
        types.CallHierarchyPrepareParams(text_document=document(), position=position(HOT, 3))
    )
    incoming = await client.call_hierarchy_incoming_calls_async(
        types.CallHierarchyIncomingCallsParams(item=item)
    )
    outgoing = await client.call_hierarchy_outgoing_calls_async(
        types.CallHierarchyOutgoingCallsParams(item=item)
    )
    assert any("main" in call.from_.name for call in incoming)
    assert any("SumSquares" in call.to.name for call in outgoing)


@pytest.mark.asyncio
async def test_commands(client: LanguageClient):
    await opened(client)
    rows = await client.workspace_execute_command_async(
        types.ExecuteCommandParams(command="perflens.showHotspots", arguments=["function", 3])
    )
    assert len(rows) == 3
    await client.workspace_execute_command_async(
        types.ExecuteCommandParams(command="perflens.toggleHints", arguments=[{"mode": "off"}])
    )
    assert await hints(client) == {}


@pytest.mark.asyncio
async def test_a_document_that_was_never_opened(client: LanguageClient):
    await opened(client)
    other = document(WORKSPACE / "none.go")
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(text_document=other))
    assert not lenses
    hover = await client.text_document_hover_async(types.HoverParams(text_document=other, position=position(0)))
    assert hover is None
