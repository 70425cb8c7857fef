# On a run root: agents that people use, the official Inspector, and sudo, to be installed in a machine
# that runs. Of Debian 13: its Node is new enough for those that need one.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
python3 -m venv /tmp/npm
/tmp/npm/bin/pip install -q -r "$INPUTS/agents.pypi.txt"
# None of their scripts is needed: what they would set up are links, which are made below.
PATH="/tmp/npm/bin:$PATH" xargs /tmp/npm/bin/npm install --prefix /opt/agents --no-audit --no-fund \
    --ignore-scripts < "$INPUTS/agents.npm.txt"
modules=/opt/agents/node_modules
# A program each, and no Node around it, all for this machine's processor: npm selects Claude Code's.
ln -s $modules/@anthropic-ai/claude-code-linux-*/claude /usr/local/bin/claude
ln -s $modules/@openai/codex/vendor/*/bin/codex /usr/local/bin/codex
ln -s $modules/opencode-linux-x64/bin/opencode $modules/.bin/gemini $modules/.bin/mcp-inspector /usr/local/bin/
apt-get update -q
mkdir -p /opt/agents/deb/partial
apt-get install -qy --no-install-recommends --download-only -o Dir::Cache::archives=/opt/agents/deb sudo
rm -rf /opt/agents/deb/partial /opt/agents/deb/lock /tmp/npm /root/.npm /root/.cache /etc/resolv.conf
apt-get clean
