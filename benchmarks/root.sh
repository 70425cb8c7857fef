# On a base root: what the benchmarks need beside the package. Runs inside the root.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
# A compiler for the programs here, and the two commands that servers are isolated with elsewhere.
apt-get install -y -q --no-install-recommends gcc libc6-dev sudo bubblewrap
# Other gates, on the same work: benchmarks/gate.py.
python3 -m venv /opt/peers
/opt/peers/bin/pip install -q -r "$INPUTS/peers.pypi.txt"
# What runs of code are compared with: benchmarks/execution.py. mcpwrap itself uses it too.
/opt/peers/bin/pip install -q -r "$INPUTS/servers.uv.txt"
ln -s /opt/peers/bin/uv /usr/local/bin/uv
# Other proxies: benchmarks/http.py. They need different versions of the same library.
grep -v '^#' "$INPUTS/http_peers.pypi.txt" | while read -r peer; do
    venv="/opt/http-peers/${peer%%=*}"
    python3 -m venv "$venv" </dev/null
    "$venv/bin/pip" install -q "$peer" </dev/null
done
rm -rf /root/.cache /etc/resolv.conf
