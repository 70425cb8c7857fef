# On a base root: PostgreSQL, MariaDB and DuckDB, and what Python needs to ask them and SQLite.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
apt-get install -q -y --no-install-recommends postgresql mariadb-server python3-psycopg2 python3-pymysql
# A story starts each when it needs it.
systemctl disable -q postgresql.service mariadb.service
python3 -m venv --system-site-packages /opt/databases
/opt/databases/bin/pip install -q -r "$INPUTS/databases.pypi.txt"
apt-get clean
rm -rf /var/lib/apt/lists/* /root/.cache /etc/resolv.conf
