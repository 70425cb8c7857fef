"""Functions and tables with which a statement reaches files, programs or other databases.

The list is open: a function that is not on it may do so too. DuckDB's functions that read a file
count for any but a relative path: a file beside the database is the database's.
"""

import re

from sqlglot import exp


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FUNCTIONS = _names("""
    dblink http http_delete http_get http_head http_patch http_post http_put lo_export lo_from_bytea
    lo_import load_extension load_file mysql_query mysql_scan opendatasource openquery openrowset
    pg_current_logfile pg_execute_server_program pg_file_read pg_file_rename pg_file_sync
    pg_file_unlink pg_file_write pg_logdir_ls pg_ls_archive_statusdir pg_ls_dir pg_ls_logdir
    pg_ls_tmpdir pg_ls_waldir pg_read_binary_file pg_read_file pg_read_server_files pg_stat_file
    postgres_query postgres_scan postgres_scan_pushdown query_export_to_s3 readfile sqlite_scan
    sys_eval sys_exec table_import_from_s3 writefile
""")
_PREFIXES = ("dblink_", "xp_", "sp_oa")
_READS_FILE = _names("""
    csvscan delta_scan iceberg_scan parquet_metadata parquet_scan parquet_schema read_blob read_csv
    read_csv_auto read_json read_json_auto read_json_objects read_ndjson read_ndjson_auto
    read_parquet read_text read_xlsx readcsv readparquet sniff_csv st_read
""")
# A path that leads out of the folder: from the root, a home, the folder above, or another host.
_OUT = re.compile(r"/|~|\\|[a-z][a-z0-9+.-]*:|\.\.(?:/|$)|.*/\.\./", re.IGNORECASE | re.DOTALL)
_IS_FILE = re.compile(
    r".*\.(?:csv|tsv|txt|json|jsonl|ndjson|parquet|xlsx|db|gz|zst)", re.IGNORECASE
)


def calls_outside(tree: exp.Expr) -> bool:
    """Return whether a statement calls such a function, or reads such a table."""
    return any(map(_reaches, tree.walk()))


def _reaches(node: exp.Expr) -> bool:
    match node:
        case exp.Attach() | exp.Copy():
            return True
        case exp.Func():
            name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
            return _is_outside(name) or (name in _READS_FILE and _reads_outside(node))
        case exp.Column():  # (x).pg_read_file, which PostgreSQL calls
            return bool(node.table) and _is_outside(node.name.lower())
        case exp.Table():
            return _is_file(node) or _is_linked(node)
        case _:
            return isinstance(node, exp.Dot) and _is_outside(node.name.lower())


def _is_outside(name: str) -> bool:
    return name in _FUNCTIONS or name.startswith(_PREFIXES)


def _reads_outside(call: exp.Func) -> bool:
    """Return whether a path is not written in the call, or leads out of the folder."""
    path = call.this if isinstance(call, exp.ReadCSV | exp.ReadParquet) else None
    paths = [path] if isinstance(path, exp.Expr) else []
    paths += [arg for arg in call.expressions if not isinstance(arg, exp.EQ | exp.PropertyEQ)]
    flat = [one for arg in paths for one in (arg.expressions if _is_list(arg) else [arg])]
    return not flat or any(not _is_inside(one) for one in flat)


def _is_list(node: exp.Expr) -> bool:
    return isinstance(node, exp.Array)


def _is_inside(path: exp.Expr) -> bool:
    is_text = isinstance(path, exp.Literal) and path.is_string
    return is_text and not _OUT.match(path.name)


def _is_file(table: exp.Table) -> bool:
    """Return whether the name of a table is a path, as DuckDB opens it: FROM '/x/y.csv'."""
    inner = table.this
    is_quoted = isinstance(inner, exp.Identifier) and bool(inner.args.get("quoted"))
    is_text = isinstance(inner, exp.Literal) and inner.is_string
    if not (is_quoted or is_text) or table.db:
        return False
    return bool(_IS_FILE.fullmatch(table.name)) and bool(_OUT.match(table.name))


def _is_linked(table: exp.Table) -> bool:
    """Return whether it is a table of a linked server: `server.database.schema.table`."""
    return bool(table.catalog) and isinstance(table.this, exp.Dot)
