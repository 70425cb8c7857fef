"""Tables of the databases' catalogues: they describe tables, and have no row of one.

The lists are closed. Left out are those with data or secrets: pg_stats and COLUMN_STATISTICS have
values of columns, pg_largeobject whole files, pg_authid and pg_shadow hashes of passwords.
"""

from sqlglot import exp


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SQLITE = _names("sqlite_master sqlite_schema sqlite_temp_master sqlite_temp_schema")
_SQLITE_SCHEMAS = frozenset({"", "main", "temp"})
_POSTGRES = _names("""
    pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_attribute pg_auth_members
    pg_available_extensions pg_available_extension_versions pg_cast pg_class pg_collation
    pg_constraint pg_conversion pg_database pg_depend pg_description pg_enum pg_event_trigger
    pg_extension pg_foreign_data_wrapper pg_foreign_table pg_group pg_index pg_indexes pg_inherits
    pg_init_privs pg_language pg_locks pg_matviews pg_namespace pg_opclass pg_operator pg_opfamily
    pg_partitioned_table pg_policies pg_policy pg_proc pg_publication pg_publication_tables
    pg_range pg_replication_slots pg_rewrite pg_roles pg_rules pg_sequence pg_sequences pg_settings
    pg_stat_activity pg_stat_all_indexes pg_stat_all_tables pg_stat_bgwriter pg_stat_database
    pg_stat_io pg_stat_progress_vacuum pg_stat_replication pg_stat_statements pg_stat_sys_tables
    pg_stat_user_functions pg_stat_user_indexes pg_stat_user_tables pg_statio_all_tables
    pg_statio_user_indexes pg_statio_user_tables pg_tables pg_tablespace pg_timezone_names
    pg_trigger pg_type pg_user pg_views
""")
_INFORMATION_SCHEMA = _names("""
    applicable_roles attributes character_sets check_constraints collations column_domain_usage
    column_privileges columns constraint_column_usage constraint_table_usage domain_constraints
    domains element_types enabled_roles engines events files foreign_tables key_column_usage
    keywords parameters partitions plugins referential_constraints role_table_grants
    routine_privileges routines schema_privileges schemata sequences statistics table_constraints
    table_privileges tables triggers udt_privileges user_privileges view_column_usage
    view_table_usage views
""")
_SYS = _names("""
    all_columns all_objects all_views allocation_units check_constraints columns computed_columns
    databases default_constraints dm_db_index_usage_stats dm_db_missing_index_details
    dm_db_partition_stats extended_properties foreign_key_columns foreign_keys identity_columns
    index_columns indexes key_constraints objects parameters partitions procedures schemas
    sequences sql_expression_dependencies sql_modules synonyms sysindexes sysobjects tables triggers
    types views
""")
_FUNCTIONS = _names("""
    duckdb_columns duckdb_constraints duckdb_databases duckdb_extensions duckdb_functions
    duckdb_indexes duckdb_schemas duckdb_settings duckdb_tables duckdb_types duckdb_views
    pragma_database_list pragma_foreign_key_list pragma_index_info pragma_index_list
    pragma_index_xinfo pragma_show_tables pragma_table_info pragma_table_list pragma_table_xinfo
""")


def is_catalogue(table: exp.Table) -> bool:
    """Return whether a table, or a function in its place, describes tables.

    The caller knows whether a CTE has the same name.
    """
    inner = table.this
    if isinstance(inner, exp.Func):
        is_known = isinstance(inner, exp.Anonymous) and inner.name.lower() in _FUNCTIONS
        return is_known and not table.db
    name, schema = table.name.lower(), table.db.lower()
    match schema:
        case "information_schema":
            return name in _INFORMATION_SCHEMA
        case "pg_catalog":
            return name in _POSTGRES
        case "sys":
            return name in _SYS
        case _:
            is_sqlite = name in _SQLITE and schema in _SQLITE_SCHEMAS
            return is_sqlite or (not schema and name in _POSTGRES)
