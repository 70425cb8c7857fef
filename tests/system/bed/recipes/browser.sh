# On a run root: Chromium as Debian has it, and Selenium to drive it, under /opt/browser.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
apt-get install -q -y --no-install-recommends chromium chromium-driver fonts-dejavu-core
python3 -m venv /opt/browser
/opt/browser/bin/pip install -q -r "$INPUTS/browser.pypi.txt"
apt-get clean
rm -rf /var/lib/apt/lists/* /root/.cache /etc/resolv.conf
